"""The signatures of rules/tosa.toml are those that tosa-opt has: each one on each target; and each with another type in
one place, of which every ninth is tried (of all 4963, none differed).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.one_op import CASES
from support.running import tosa_opt

from tflq.base.files import resource
from tflq.formats.tosa.check import demands
from tflq.formats.tosa.rules import Target, default_rules, read_rules
from tflq.formats.tosa.text import mlir_text
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant, op_names
from tflq.ir.types import SCALARS

TYPES = ("i1", "i4", "i8", "i16", "i32", "i64", "f16", "bf16", "f32")
OTHERS = ("tosa.cond_if", "tosa.while_loop", "tosa.variable", "tosa.variable_read", "tosa.variable_write")
EVERYTHING = ("int16", "int4", "bf16")

Signature = tuple[tuple[str, ...], tuple[str, ...]]


@cache
def examples() -> dict[str, Op]:
    """An op of each name."""
    ops = (op for make in CASES.values() for op in make().main.ops)
    return {op.name: op for op in reversed(list(ops)) if op.name not in OTHERS}


def signatures(op: Op) -> Iterator[Signature]:
    """What is admitted of the op by anything, and each with one type replaced."""
    name, rules = op.name.removeprefix("tosa."), default_rules()[0]
    arity = len(op.operands) if name != "concat" else 1
    combinations = product(TYPES, repeat=arity + 1)
    admitted = [s for s in combinations if any(True for _ in rules.providers(name, s[:-1], s[-1:]))]
    others = dict.fromkeys((*s[:i], t, *s[i + 1 :]) for s in admitted for i in range(len(s)) for t in TYPES)
    found = dict.fromkeys([*admitted, *list(others)[::9]])
    return ((s[:-1] * (len(op.operands) if name == "concat" else 1), s[-1:]) for s in found)


def retyped(op: Op, types: Signature) -> Module:
    """A function around an op like this one, of other types. Constants stay constants where they have to."""
    operands, results = types
    made: list[Value | None] = []
    for value, type in zip(op.operands, operands, strict=True):
        assert value is not None
        new = Value(value.type.with_element(SCALARS[type]), "x")
        if op.name == "tosa.table" and len(made) == 1:
            entries = 513 if operands[0] == "i16" else 256
            new = constant(np.zeros(entries, np.int8), SCALARS["i8"])
            if SCALARS[type].numpy and type not in ("i4", "i1"):
                new = constant(np.zeros(entries, SCALARS[type].dtype), SCALARS[type])
        made.append(new)
    attributes = {k: 0 if k.endswith("_zp") or k == "shift" else v for k, v in op.attributes.items()}
    if op.name == "tosa.rescale":
        wide = operands[0] == "i64"
        attributes |= {"scale32": not wide, "rounding_mode": "SINGLE_ROUND", "per_channel": False}
        attributes |= {"multiplier": np.array([1 << 14], np.int32), "shift": np.array([20], np.int8)}
    if op.name == "tosa.clamp":
        attributes |= {"min_val": 0, "max_val": 1}
    if op.name == "tosa.pad":
        attributes |= {"pad_const": 0}
    if op.name == "tosa.resize":
        attributes["mode"] = "NEAREST_NEIGHBOR" if operands == results else "BILINEAR"
    result = Value(op.result.type.with_element(SCALARS[results[0]]))
    inputs = [v for v in made if v is not None and not v.is_constant]
    return Module([Function("main", inputs, [], [Op(op.name, made, [result], attributes)])])


@cache
def chunks() -> tuple[list[str], list[tuple[str, Signature]]]:
    """The texts, without what they need, and what each is of."""
    texts, of = [], []
    for name, op in sorted(examples().items()):
        for types in signatures(op):
            module = retyped(op, types)
            if demands(module.main.ops[0])[0][1:] != types:
                continue  # a table that has no array of that type
            texts.append(re.sub(r"^.*\nmodule.*\{\n", "", mlir_text(module)))
            of.append((name, types))
    return texts, of


@pytest.mark.parametrize(
    ("profiles", "extensions"),
    [
        (("pro_int",), ()),
        (("pro_int",), ("int16",)),
        (("pro_int",), ("int4",)),
        (("pro_fp",), ()),
        (("pro_fp",), ("bf16",)),
        (("pro_int", "pro_fp"), EVERYTHING),
    ],
)
def test_signatures(profiles: tuple[str, ...], extensions: tuple[str, ...], tmp_path: Path) -> None:
    tool = tosa_opt()
    texts, of = chunks()
    listed = ", ".join((*extensions, "controlflow"))
    head = (
        'module attributes {tosa.target_env = #tosa.target_env<specification_version = "1.0", level = "8k", '
        f"profiles = [{', '.join(profiles)}], extensions = [{listed}]>}} {{\n"
    )
    path = tmp_path / "all.mlir"
    path.write_text("// -----\n".join(head + text for text in texts))
    run = subprocess.run(
        [tool, str(path), "--split-input-file", "--tosa-validate=strict-op-spec-alignment", "-o", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = {int(m[1]) for m in re.finditer(r"all\.mlir:(\d+):\d+: error", run.stderr)}
    target = Target(frozenset(profiles), frozenset(extensions))
    at, wrong = 1, []
    for text, (name, types) in zip(texts, of, strict=True):
        length = text.count("\n") + 2
        refused = any(line in lines for line in range(at, at + length))
        having = filter(target.has, target.rules.providers(name.removeprefix("tosa."), *types))
        if any(having) == refused:
            wrong.append(f"{name} {types}: tosa-opt {'refuses' if refused else 'takes'} it")
        at += length
    assert not wrong, "\n".join([f"{len(wrong)} of {len(texts)}", *wrong[:40]])


def test_every_operator_has_signatures() -> None:
    rules = default_rules()[0]
    tables = [*rules.profiles.values(), *rules.extensions.values()]
    missing = {name for name in op_names("tosa") if not any(name.removeprefix("tosa.") in t.names for t in tables)}
    assert not missing


def test_the_default_is_checked_as_a_file_of_the_users_is() -> None:
    default = resource("rules/tosa.toml")
    read, known = (
        (choices.specification, choices.profiles, choices.extensions, choices.level)
        for _, choices in (read_rules(default, default), default_rules())
    )
    assert read == known
