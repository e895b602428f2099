"""How `rules/kernels.toml` is measured: which constraints a table gets, and one operator from the interpreter on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tflq.targets.load import load_target, measured_kernels
from tflq.targets.signature import parse_signature

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in [name for name in sys.modules if name == "scripts" or name.startswith("scripts.")]:
        del sys.modules[name]


def _samples(*rows: tuple[int, bool, dict[str, bool]]) -> list[Any]:
    made = import_module("scripts.kernel_table").Sample
    names = ("no_activation", "same_scale")
    return [
        made(right, True, {name: kept.get(name, True) for name in names})
        for count, right, kept in rows
        for _ in [0] * count
    ]


def _listed(kinds: dict[tuple[str, str, str], list[Any]]) -> str:
    text: str = import_module("scripts.kernel_table").table({"gather": kinds}, {"unsigned": {}})
    return text.partition("[kernels]\n")[2].partition("\n[rescale]")[0].strip()


BROKEN = {"same_scale": False}


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([(20, True, {})], "qi8 i32 -> qi8"),
        ([(20, True, {}), (6, False, BROKEN)], "qi8 i32 -> qi8; same_scale"),
        ([(20, True, {}), (2, True, BROKEN), (1, False, BROKEN)], "qi8 i32 -> qi8"),
        ([(3, True, {}), (20, False, {})], ""),
        ([(2, True, {})], ""),
        (
            [(9, True, {}), (9, False, {"no_activation": False}), (9, False, BROKEN)],
            "qi8 i32 -> qi8; no_activation; same_scale",
        ),
    ],
    ids=["right", "needs it", "a stray one", "wrong", "too few", "needs two"],
)
def test_constraints(rows: list[tuple[int, bool, dict[str, bool]]], line: str) -> None:
    """Those that tell right models from wrong ones, and no others."""
    assert _listed({("qi8 I -> qi8", "", "i32"): _samples(*rows)}) == (f'gather = "{line}"' if line else "")


def test_kinds_of_integers_are_one_line() -> None:
    """What is wrong of one kind takes nothing from the others."""
    kinds = {
        ("qi8 I -> qi8", "", "i32"): _samples((20, True, {}), (9, False, BROKEN)),
        ("qi8 I -> qi8", "", "i64"): _samples((4, True, {})),
        ("qi8 I -> qi8", "", "i16"): _samples((4, False, {})),
        ("qi8/axis I -> qi8/axis", "", "i32"): _samples((20, True, {})),
    }
    assert _listed(kinds) == 'gather = "qi8 I -> qi8; same_scale; I = i32 i64"'


@pytest.mark.slow
def test_an_operator_from_the_interpreter_on() -> None:
    """RESHAPE, measured here, has the lines of the table."""
    pytest.importorskip("ai_edge_litert", reason="the interpreter runs the models: pip install ai-edge-litert")
    found = import_module("scripts.kernel_outcomes").measure("samples of reshape", 1)
    assert {outcome.operator for outcome in found} == {"reshape"}
    right = {outcome.key[0] for outcome in found if outcome.sample.right and outcome.sample.kept["same_scale"]}
    assert {"qi8 any? -> qi8", "qui8 any? -> qui8", "qi16 any? -> qi16"} <= right
    wrong = [o for o in found if o.key[0] == "qi8 any? -> qi8" and not o.sample.kept["same_scale"]]
    assert not all(outcome.sample.right for outcome in wrong)
    listed = {signature.text.replace(" positive_scale;", "") for signature in load_target("kernels").kernels["reshape"]}
    assert {f"{text}; same_scale" for text in ("qi8 any? -> qi8", "qui8 any? -> qui8", "qi16 any? -> qi16")} <= listed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "line", "narrowed"),
    [
        ("abs", "qi16 -> qi16", "qi16:0 -> qi16:0"),
        ("abs", "qi8 -> qi8", "qi8 -> qi8"),
        ("hard_swish", "qi8 -> qi8", "qi8 -> qi8; scale_ratio_below 128"),
        (
            "add",
            "qi16 qi16 -> qi16",
            "qi16:0 qi16:0 -> qi16:0; positive_scale; power_of_two_shifts; scale_ratio_below 16384",
        ),
    ],
)
def test_limits_of_a_kernel(kernel: str, line: str, narrowed: str) -> None:
    """Zero points and scales that a kernel refuses, or dies of, are no longer in its line."""
    pytest.importorskip("ai_edge_litert", reason="the interpreter runs the models: pip install ai-edge-litert")
    assert import_module("scripts.kernel_limits").narrowed({kernel: [line]}) == {kernel: [narrowed]}


def test_the_kernels_of_some_operators_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of a small conversion looks at its own operators: the signatures of all take a while to read."""
    whole, read = load_target("kernels").kernels, []

    def counted(line: str) -> Any:
        read.append(line)
        return parse_signature(line)

    monkeypatch.setattr("tflq.targets.load.parse_signature", counted)
    measured_kernels.cache_clear()
    part = measured_kernels(frozenset({"pad", "abs", "var_handle"}))
    assert part.name == "kernels"
    assert part.kernels.keys() == {"pad", "abs"}
    for name, signatures in part.kernels.items():
        assert [s.text for s in signatures] == [s.text for s in whole[name]]
    assert len(read) == sum(map(len, part.kernels.values()))
