"""Selection: a module in the integer form → the same module on TFLite builtins.

`tfl` ops (already kernels) pass through; every other op has one lowering. `quant.scast` at a function's edge is where
a tensor with quantization parameters meets plain integers. A kernel that disregards parameters reads an argument, or
writes a result, directly; for any other an identity kernel stands between, since with parameters on it would compute
something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Function, Location, Module, Op, Value
from tflq.light import dataclass
from tflq.select.lowering import Kernels, Mac, lowering

if TYPE_CHECKING:
    from tflq.proof_cache import ProofCache

__all__ = ["Select", "select"]


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


def select(module: Module, *, mac: Mac = "integer", proofs: ProofCache | None = None) -> Module:
    """The module on kernels; `mac` is the form of multiply-accumulate. Roundings are lowered and variables declared
    before (`lower-rounding`, `declare-variables`). UnsupportedError lists every op without a lowering."""
    missing: dict[Location | None, set[str]] = {}
    for op in module.ops():
        if not _known(op):
            missing.setdefault(op.location, set()).add(op.name)
    if missing:
        reasons = [Reason.at(place, f"no kernel for {', '.join(sorted(names))}") for place, names in missing.items()]
        what = f"{len(missing)} operator(s) have no form on this target's kernels:"
        raise UnsupportedError(what, reasons, remedy="convert only the part before it (--cut)")
    made: dict[Value, Value] = {}
    for function in module.functions:
        before = list(function.outputs)
        _select_function(function, mac, proofs)
        made |= zip(before, function.outputs, strict=True)
    if module.signatures is not None:
        module.signatures = [signature.with_outputs(made) for signature in module.signatures]
    return module


def _known(op: Op) -> bool:
    return op.name.startswith("tfl.") or lowering.get(type(op)) is not None


def _select_function(function: Function, mac: Mac, proofs: ProofCache | None) -> None:
    k = Kernels(function, mac, proofs)
    for op in function.ops:
        if op in k.fused:
            continue
        k.location = op.location
        if op.name.startswith("tfl."):
            operands = [None if v is None else k.value(v) for v in op.operands]
            info, inner = dict(op.info), op.intermediates
            k.ops.append(Op(op.name, operands, op.results, op.attributes, op.location, info=info, intermediates=inner))
            continue
        k.begin()
        function_of = lowering.get(type(op))
        assert function_of is not None
        results = function_of(op, k)
        k.end(op, [results] if isinstance(results, Value) else results)
    function.ops = k.ops
    function.outputs = [k.value(v) for v in function.outputs]
