"""Every step of a conversion by its name, as `tflq opt -p` takes it, and how a text says its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tflq.contract import Pass
from tflq.errors import OptionError, Reason
from tflq.legalize.steps import BuiltinsOfText, CoreToInteger, Legalize
from tflq.passes.lower_rounding import LowerRounding
from tflq.passes.row_updates import RowUpdates
from tflq.passes.runtime import StateRuntime
from tflq.passes.source import Cut, CutBeforeCustom, ExtractSignature, RecordNames
from tflq.passes.spectra import Spectra
from tflq.passes.tabulate import Tabulate
from tflq.select import cost
from tflq.select.steps import (
    CheckLegality,
    DeclareVariables,
    KeepApart,
    MergeViews,
    NameTensors,
    Select,
    ShareTables,
    SplitRows,
    TrimEdges,
)
from tflq.shapes.steps import BindShapes, RestateResults, SettleShapes, StateShapes
from tflq.targets import load_target as load_kernels
from tflq.tosa.lowering import cost as tosa_cost
from tflq.tosa.steps import CheckLaws, CheckTosa, LowerToTosa, RaiseTosa
from tflq.tosa.target import load_target as load_tosa

__all__ = ["READERS", "STEPS"]

STEPS: Final[Mapping[str, type[Pass]]] = {
    item.name: item
    for item in (
        *(ExtractSignature, Cut, CutBeforeCustom, RecordNames, RowUpdates, Spectra),
        *(BindShapes, SettleShapes, StateShapes, RestateResults),
        *(CoreToInteger, BuiltinsOfText, Legalize, Tabulate, LowerRounding),
        *(
            DeclareVariables,
            SplitRows,
            Select,
            TrimEdges,
            MergeViews,
            ShareTables,
            KeepApart,
            NameTensors,
            StateRuntime,
            CheckLegality,
        ),
        *(CheckLaws, RaiseTosa, LowerToTosa, CheckTosa),
    )
}
"""The passes that `tflq.pipelines` makes a conversion of, beside those that any stage can use."""


def _worth(text: str) -> Callable[..., float]:
    known = {"kernels": cost.table_pays, "tosa": tosa_cost.table_pays}
    if text not in known:
        raise OptionError(Reason(f"tables for '{text}' are not known", value=text, remedy="kernels or tosa"))
    return known[text]


def _tosa(text: str) -> object:
    return load_tosa(None if text == "tosa" else text)


def _tensors(text: str) -> tuple[str, ...]:
    return tuple(text.split(";"))


def _shapes(text: str) -> Mapping[str, tuple[int, ...]]:
    """`input:1x224x224x3;state:1x8`; `scale:` is a scalar."""
    found = {}
    for item in text.split(";"):
        name, _, dims = item.rpartition(":")
        sizes = dims.split("x") if dims else []
        if not name or not all(size.isdigit() for size in sizes):
            raise OptionError(Reason(f"'{item}' is no shape of an input", value=text, remedy="input:1x224x224x3"))
        found[name] = tuple(map(int, sizes))
    return found


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "bind-shapes.shapes": _shapes,
    "check-legality.target": load_kernels,
    "check-tosa.target": _tosa,
    "cut.tensors": _tensors,
    "legalize.target": load_kernels,
    "lower-to-tosa.target": _tosa,
    "tabulate.worth": _worth,
}
"""How the text of an option is read that is no word, number or truth value; by pass and option."""
