"""Passes on the source model, before anything is lowered: which part of it is converted, and what is kept in mind."""

from __future__ import annotations

from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.ir.core import Module
from tflq.light import dataclass
from tflq.records import SourceNames

__all__ = ["Cut", "CutBeforeCustom", "ExtractSignature", "RecordNames"]


@dataclass(frozen=True)
class ExtractSignature(Pass):
    """Keeps the function of one signature, and what it runs. `key`: of the signature; none: the first function."""

    name: ClassVar[str] = "extract-signature"
    title: ClassVar[str] = "extraction of a signature"
    key: str = ""

    def run(self, module: Module) -> PassResult:
        from tflq.passes.entry import extract

        return PassResult(extract(module, self.key), modified=True)


@dataclass(frozen=True)
class Cut(Pass):
    """Keeps the part up to some tensors, by name, which become outputs."""

    name: ClassVar[str] = "cut"
    title: ClassVar[str] = "cutting"
    tensors: tuple[str, ...] = ()

    def run(self, module: Module) -> PassResult:
        from tflq.passes.cutting import cut_at

        return PassResult(cut_at(module, self.tensors), modified=True)


class CutBeforeCustom(Pass):
    """Keeps the part up to what custom operators read."""

    name: ClassVar[str] = "cut-before-custom"
    title: ClassVar[str] = "cutting before custom operators"

    def run(self, module: Module) -> PassResult:
        from tflq.passes.cutting import cut_before_custom

        return PassResult(cut_before_custom(module), modified=True)


class RecordNames(Pass):
    """Notes the names of all tensors (`SourceNames`), so that no new tensor gets one of them."""

    name: ClassVar[str] = "record-names"

    def run(self, module: Module) -> PassResult:
        names = frozenset(v.name for f in module.functions for group in (f.tensors, f.values()) for v in group)
        module.record.note(SourceNames(names))
        return PassResult(module, modified=False)
