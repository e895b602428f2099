"""lower-quant-ops and strip-func-quant-types make what MLIR's passes of these names make, on random types and shapes.

The texts are compared as tflq prints them: what MLIR made is read back and printed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from support.mlir_oracle import needs_mlir, random_calls, random_casts, random_chains, random_judged, run

from tflq.base.errors import TflqError, UnsupportedError
from tflq.dialects.quant import verify_casts
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

COUNT = int(os.environ.get("TFLQ_MLIR_COUNT", "300"))


def made(text: str, passes: str) -> Module:
    module = parse_module(text)
    verify(module)
    module = parse_pipeline(passes).run(module).module
    verify_casts(module)
    return module


def ordered(module: Module) -> str:
    """The text with ops in the order in which the results need them, so that the order of others says nothing."""
    for function in module.functions:
        placed: dict[Op, None] = {}

        def place(value: Value | None, placed: dict[Op, None] = placed) -> None:
            op = None if value is None else value.producer
            if op is None or op in placed:
                return
            for inner in walk([op]):
                for operand in inner.operands:
                    if operand is None or operand.producer not in list(walk([op])):
                        place(operand)
            placed[op] = None

        for value in (*function.outputs, *(r for op in function.ops for r in op.results)):
            place(value)
        function.ops = [*placed, *(op for op in function.ops if not op.results)]
        function.info = {key: item for key, item in function.info.items() if key != "visibility"}
    return print_module(module)


@needs_mlir
def test_lowered_casts_are_mlirs() -> None:
    texts = random_casts(COUNT, 1)
    ours = [made(text, "lower-quant-ops,dce") for text in texts]
    printed = [print_module(module) for module in ours]
    for text, module, theirs in zip(texts, ours, run(texts, "func.func(lower-quant-ops)"), strict=True):
        assert ordered(module) == ordered(made(theirs, "dce")), text
    assert not [text for text in run(printed) if text.startswith("ERROR")]


@needs_mlir
def test_casts_lowered_to_tosa_are_valid() -> None:
    """As it is printed, with no dialect but MLIR's own; with every rounding."""
    printed = []
    for number, text in enumerate(random_casts(COUNT, 2)):
        rounding = ("half_even", "half_away", "half_up", "toward_zero")[number % 4]
        if "bf16" in text or ("{{" in text and "?" in text):
            continue
        with suppress(UnsupportedError):  # blocks of a shape that is not known
            printed.append(print_module(made(text, f"lower-quant-ops{{dialect=tosa rounding={rounding}}}")))
    assert len(printed) > COUNT // 2
    for text, theirs in zip(printed, run(printed, allow_unregistered=False), strict=True):
        assert not theirs.startswith("ERROR"), f"{text}\n{theirs}"


@needs_mlir
def test_casts_are_refused_if_mlir_refuses_them() -> None:
    texts = random_judged(COUNT, 1)
    for text, theirs in zip(texts, run(texts), strict=True):
        try:
            module = parse_module(text)
            verify(module)
            verify_casts(module)
            refused = False
        except TflqError:
            refused = True
        assert refused == theirs.startswith("ERROR"), text


@needs_mlir
def test_stripped_functions_are_mlirs() -> None:
    texts = random_calls(COUNT, 1)
    theirs = run(texts, "strip-func-quant-types,canonicalize")
    for text, other in zip(texts, theirs, strict=True):
        module = made(text, "strip-func-quant-types,canonicalize,dce")
        assert ordered(module) == ordered(made(other, "dce")), text


@needs_mlir
def test_canonicalized_casts_are_mlirs() -> None:
    texts = random_chains(COUNT, 1)
    theirs = run(texts, "canonicalize")
    for text, other in zip(texts, theirs, strict=True):
        assert ordered(made(text, "canonicalize,dce")) == ordered(made(other, "dce")), text
    assert (
        sum(text.count("quant.") > other.count("quant.") for text, other in zip(texts, theirs, strict=True))
        > COUNT // 4
    )
