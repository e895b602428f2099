"""MLIR accepts the text of the corpus' models, as they are read and converted to TOSA.

What MLIR excludes of types that files have is counted by reason. A share of the models is asked for, all with
TFLQ_MLIR_COUNT as large as the corpus.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from support.corpus import models, needs_corpus
from support.mlir_oracle import needs_mlir, run

from tflq.base.errors import TflqError, UnsupportedError
from tflq.conversion.convert import convert
from tflq.formats.tflite.reader import read
from tflq.ir.text.printer import print_module

pytestmark = [*needs_corpus, needs_mlir]

COUNT = int(os.environ.get("TFLQ_MLIR_COUNT", "300")) // 10
SIZE = 1 << 20
EXCLUDED = {
    "storage of more than 32 bits": r"illegal storage type size: (?:3[3-9]|[4-9]\d)",
    "scales of 0 or infinite": r"out of expressed type range",
}
Record: TypeAlias = Callable[[str, object], None]


def chosen() -> list[Path]:
    """Models of all folders, evenly; none too large to be passed on as text."""
    found = [path for folder in ("zoo", "fresh", "ops") for path in models(folder) if path.stat().st_size < SIZE]
    return found[:: max(len(found) // COUNT, 1)]


def as_read(path: Path) -> str:
    return print_module(read(path))


def as_tosa(path: Path) -> str:
    return convert(path, format="mlir").data.decode()


@pytest.mark.parametrize("text_of", [as_read, as_tosa])
def test_text_is_accepted(text_of: Callable[[Path], str], record_testsuite_property: Record) -> None:
    texts: dict[Path, str] = {}
    found: Counter[str] = Counter()
    for path in chosen():
        try:
            texts[path] = text_of(path)
        except UnsupportedError:
            found["not in TOSA"] += 1
        except TflqError:
            found["no valid file"] += 1
    for path, theirs in zip(texts, run(list(texts.values())), strict=True):
        if not theirs.startswith(("ERROR", "CRASH")):
            found["accepted"] += 1
            continue
        reasons = [reason for reason, said in EXCLUDED.items() if re.search(said, theirs)]
        assert reasons, f"{path}: {theirs[:600]}"
        found[reasons[0]] += 1
    for reason, count in found.items():
        record_testsuite_property(f"{text_of.__name__}: {reason}", count)
    assert found["accepted"] > len(texts) * 0.8
