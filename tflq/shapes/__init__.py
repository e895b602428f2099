"""Shape inference on the tfl form: what an interpreter's Prepare finds, by the `infer` of each operator; binding of an
open batch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tflq.dialects.inference import Misfit, NotInferred
from tflq.shapes.inference import Inference
from tflq.shapes.settling import Stated, settle
from tflq.shapes.site import Site

if TYPE_CHECKING:
    from tflq.shapes.binding import bind_batch
    from tflq.shapes.filling import contradictions, infer

__all__ = [
    "Inference",
    "Misfit",
    "NotInferred",
    "Site",
    "Stated",
    "bind_batch",
    "contradictions",
    "infer",
    "settle",
]

_HOME = {"bind_batch": "tflq.shapes.binding", "contradictions": "tflq.shapes.filling", "infer": "tflq.shapes.filling"}


def __getattr__(name: str) -> Any:
    """Imports what few models need when it is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'tflq.shapes' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
