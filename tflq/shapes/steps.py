"""The passes of shape inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tflq.analysis.variables import is_handle
from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.ir.core import Module
from tflq.light import dataclass, field
from tflq.shapes.settling import Stated, settle

__all__ = ["BindShapes", "RestateResults", "SettleShapes", "StateShapes"]


@dataclass(frozen=True)
class BindShapes(Pass):
    """Binds open dims of the inputs, and gives every tensor the shape that follows. `batch`: the first dim where it is
    open; `shapes`: whole shapes of inputs by name. Without both, a model with open inputs is left as it is."""

    name: ClassVar[str] = "bind-shapes"
    title: ClassVar[str] = "binding of shapes"
    takes: ClassVar[Form] = "tfl"
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def run(self, module: Module) -> PassResult:
        given = self.batch is not None or bool(self.shapes)
        if not given and not all(v.type.is_static or is_handle(v) for f in module.functions for v in f.inputs):
            return PassResult(module, modified=False)
        from tflq.shapes.binding import bind_batch

        return PassResult(bind_batch(module, self.batch, self.shapes), modified=True)


@dataclass(frozen=True)
class SettleShapes(Pass):
    """Gives every result the shape that an interpreter computes. What the file says of inputs and results is noted
    (`Stated`). `resizable`: so that what is made of the module runs with other batches than the one stated; else
    what is read from a variable has its shape, too."""

    name: ClassVar[str] = "settle-shapes"
    title: ClassVar[str] = "inference of shapes"
    takes: ClassVar[Form] = "tfl"
    resizable: bool = True

    def run(self, module: Module) -> PassResult:
        values = [v for function in module.functions for v in function.values()]
        before = [(v.type, v.info) for v in values]
        module.record.note(settle(module, resizable=self.resizable))
        changed = any(v.type is not t or v.info is not info for v, (t, info) in zip(values, before, strict=True))
        return PassResult(module, changed)


class StateShapes(Pass):
    """Has tensors with open dims state the shape that they are allocated with."""

    name: ClassVar[str] = "state-shapes"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        if all(value.type.is_static for function in module.functions for value in function.values()):
            return PassResult(module, modified=False)
        from tflq.shapes.stating import state_shapes

        return PassResult(module, state_shapes(module))


class RestateResults(Pass):
    """States of an entry's inputs and results what the source did, as `settle-shapes` noted it."""

    name: ClassVar[str] = "restate-results"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        stated = module.record.find(Stated)
        return PassResult(module, stated is not None and stated.put_back(module))
