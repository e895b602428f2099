"""The passes of selection, in their order."""

from __future__ import annotations

from typing import ClassVar, Literal

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.ir.core import Module
from tflq.light import dataclass
from tflq.records import Decisions, SourceNames
from tflq.select.edges import trim_edges
from tflq.select.engine import select
from tflq.select.equal_tables import share_tables
from tflq.select.legality import check
from tflq.select.naming import name_tensors
from tflq.select.sharing import keep_apart, merge_views
from tflq.select.state import declare_variables, retype_handles
from tflq.select.strips import in_strips
from tflq.targets import INTEGER, Target

__all__ = [
    "CheckLegality",
    "DeclareVariables",
    "KeepApart",
    "MergeViews",
    "NameTensors",
    "Select",
    "ShareTables",
    "SplitRows",
    "TrimEdges",
]


@dataclass(frozen=True)
class DeclareVariables(Pass):
    """Variables become resource variables that CALL_ONCE writes first. `reset`: a signature resets them. Handles of the
    model's own become such that can be read."""

    name: ClassVar[str] = "declare-variables"
    title: ClassVar[str] = "declaration of variables"
    takes: ClassVar[Form] = "integer"
    reset: bool = False

    def run(self, module: Module) -> PassResult:
        declared = declare_variables(module, reset=self.reset)
        return PassResult(module, retype_handles(module) or declared)


@dataclass(frozen=True)
class SplitRows(Pass):
    """Results with large intermediates are computed in strips of rows. `share`: what each may take at most, in times
    of what the largest operator reads and makes; `least`: bytes of intermediates that are left in any case."""

    name: ClassVar[str] = "split-rows"
    takes: ClassVar[Form] = "integer"
    share: float = 2.0
    least: int = 1 << 15

    def run(self, module: Module) -> PassResult:
        return PassResult(module, in_strips(module, share=self.share, least=self.least))


@dataclass(frozen=True)
class Select(Pass):
    """Every op becomes builtins. `mac`: the form of multiply-accumulate; `cache`: a folder of proofs."""

    name: ClassVar[str] = "select"
    title: ClassVar[str] = "selection of kernels"
    takes: ClassVar[Form] = "integer"
    makes: ClassVar[Form] = "kernels"
    mac: Literal["integer", "float32"] = "integer"
    cache: str = ""

    def run(self, module: Module) -> PassResult:
        proofs = None
        if self.cache:
            from tflq.proof_cache import ProofCache

            proofs = ProofCache(self.cache)
        return PassResult(select(module, mac=self.mac, proofs=proofs), modified=True)


class TrimEdges(Pass):
    """Drops copies between tensors with parameters and tensors without, where a kernel disregards them."""

    name: ClassVar[str] = "trim-edges"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        return PassResult(module, trim_edges(module))


class MergeViews(Pass):
    """RESHAPE of a RESHAPE becomes one, or none."""

    name: ClassVar[str] = "merge-views"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        return PassResult(module, merge_views(module))


class ShareTables(Pass):
    """Equal tables that GATHER looks up share their bytes, in whichever function."""

    name: ClassVar[str] = "share-tables"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        return PassResult(module, share_tables(module))


class KeepApart(Pass):
    """Copies a tensor whose memory the interpreter would overwrite while it is still to be read."""

    name: ClassVar[str] = "keep-apart"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        return PassResult(module, keep_apart(module))


class NameTensors(Pass):
    """Gives every tensor a name that no other has, and none of the source's (`SourceNames`) to a new one."""

    name: ClassVar[str] = "name-tensors"
    takes: ClassVar[Form] = "kernels"
    labels: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        source = module.record.find(SourceNames) or SourceNames()
        name_tensors(module, source.names)
        return PassResult(module, modified=True)


@dataclass(frozen=True)
class CheckLegality(Pass):
    """UnsupportedError lists what the target may not hold. `mac`: the form of multiply-accumulate."""

    name: ClassVar[str] = "check-legality"
    title: ClassVar[str] = "check of the result"
    takes: ClassVar[Form] = "kernels"
    target: Target = INTEGER
    mac: Literal["integer", "float32"] = "integer"

    def run(self, module: Module) -> PassResult:
        check(module, Decisions.of(module), self.mac, self.target)
        return PassResult(module, modified=False)
