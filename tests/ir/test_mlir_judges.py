"""Random text is accepted where MLIR accepts it, and printed text means the same to both.

What is decided otherwise is named here; docs/proposals.md says why.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest
from support.corpus import CORPUS
from support.mlir_oracle import needs_mlir, run
from support.random_stablehlo import random_products, random_reductions
from support.random_types import random_types

from tflq.base.errors import TflqError
from tflq.dialects.quant import verify_casts
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify

COUNT = int(os.environ.get("TFLQ_MLIR_COUNT", "300"))
pytestmark = needs_mlir

Record: TypeAlias = Callable[[str, object], None]
"""Puts a figure into the report of the tests (`--junit-xml`)."""
STRICTER = {
    "a zero point outside the storage type": r"zero point .* is outside",
    "per-axis integrity in function headers": r"function \d+ 'f': argument \d+: ",
    "storage of one bit": r"'[us]?i?1' is not a storage type",
    "storage types of different signedness": r"must have the same storage type",
    "element types of reductions, which MLIR lets promote": (
        r"element_type\(\w+|body has type|\(C9\)|output_conversion has type|baseline_element_type"
    ),
    "shapes of several inputs, compared pair by pair": r"same\(shape|shape\(results|shape\(source\)",
}
"""What tflq refuses and MLIR accepts: why, and what the message says."""
LOOSER = {
    "storage of more than 32 bits": r"illegal storage type size: (?:3[3-9]|[4-9]\d)",
    "scales of 0, or infinite, or with bits that MLIR takes for a double's": r"out of expressed type range",
    "an axis beyond 32 bits": r"integer value too large",
    "a result per axis of an rhs per tensor in dot_general": r"mismatched rhs and result quantization granularity",
}
"""What MLIR refuses and tflq accepts."""


def judged(text: str) -> tuple[Module | None, str]:
    """The module, or None and why it is refused."""
    try:
        module = parse_module(text)
        verify(module)
        verify_casts(module)
    except TflqError as error:
        return None, str(error)
    return module, ""


def compare(texts: Sequence[str], record: Record, what: str) -> Counter[str]:
    """How often both accept, both refuse, and each difference occurs. AssertionError for one that is not named."""
    found: Counter[str] = Counter()
    for text, theirs in zip(texts, run(texts), strict=True):
        module, why = judged(text)
        refused = theirs.startswith("ERROR")
        if theirs == "CRASH":
            found["MLIR ends"] += 1
        elif (module is None) == refused:
            found["both refuse" if refused else "both accept"] += 1
        else:
            reasons = LOOSER if refused else STRICTER
            named = [reason for reason, said in reasons.items() if re.search(said, theirs if refused else why)]
            assert named, f"{text}\n{theirs if refused else why}"
            found[named[0]] += 1
        if module is not None and not refused and theirs != "CRASH":
            assert parse_module(theirs) == module, text
    for reason, count in found.items():
        record(f"{what}: {reason}", count)
    return found


def test_types(record_testsuite_property: Record) -> None:
    pairs = random_types(COUNT, 1)
    twins = run([valid for valid, _ in pairs])
    assert not [twin for twin in twins if twin.startswith("ERROR")]
    assert all(judged(valid)[0] is not None for valid, _ in pairs)
    found = compare([changed for _, changed in pairs], record_testsuite_property, "types")
    assert found["both refuse"] > COUNT // 3
    assert found["both accept"] > COUNT // 10


def test_products(record_testsuite_property: Record) -> None:
    found = compare(random_products(COUNT, 1), record_testsuite_property, "products")
    assert min(found["both refuse"], found["both accept"]) > COUNT // 4


def test_reductions(record_testsuite_property: Record) -> None:
    found = compare(random_reductions(COUNT, 1), record_testsuite_property, "reductions")
    assert min(found["both refuse"], found["both accept"]) > COUNT // 5


def test_printed_text_means_the_same() -> None:
    """What tflq prints of a text, MLIR reads as that text; what MLIR prints in its generic form, tflq does."""
    texts = [*random_products(COUNT // 2, 2), *random_reductions(COUNT // 2, 2)]
    read = [(text, module) for text in texts if (module := judged(text)[0]) is not None]
    theirs = run([text for text, _ in read], generic=True)
    ours = run([print_module(module) for _, module in read], generic=True)
    compared = 0
    for (text, module), first, second in zip(read, theirs, ours, strict=True):
        if first.startswith(("ERROR", "CRASH")):
            continue
        compared += 1
        assert re.sub(r" *\{tflq.version = 3 : i64\}", "", second) == first, text
        assert parse_module(first) == module, text
    assert compared > COUNT // 4


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"NO CORPUS at {CORPUS}: set TFLQ_CORPUS to the folder of models")
def test_examples_as_mlir_prints_them(record_testsuite_property: Record) -> None:
    """Each example that both accept is the same module in MLIR's pretty and in its generic form."""
    files = sorted((CORPUS / "seed_examples").glob("*.mlir"))
    texts = [text for file in files if judged(text := file.read_text(encoding="utf-8"))[0] is not None]
    compared = 0
    for generic in (False, True):
        for text, theirs in zip(texts, run(texts, generic=generic), strict=True):
            if not theirs.startswith(("ERROR", "CRASH")):
                assert parse_module(theirs) == parse_module(text), text
                compared += 1
    record_testsuite_property("examples: texts of MLIR compared", compared)
    assert compared > 300
