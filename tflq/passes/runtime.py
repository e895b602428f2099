"""state-runtime: the metadata that says which release of the runtime a converted model needs."""

from __future__ import annotations

from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.dialects.tfl.runtime import state_runtime
from tflq.ir.core import Module
from tflq.records import Decisions

__all__ = ["StateRuntime"]


class StateRuntime(Pass):
    """States the release that the operators need, if the source names one."""

    name: ClassVar[str] = "state-runtime"
    takes: ClassVar[Form] = "kernels"
    labels: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        made = any(decision.path != "kept" for decision in Decisions.of(module))
        return PassResult(module, state_runtime(module, made=made))
