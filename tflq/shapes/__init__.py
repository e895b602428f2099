"""Shape inference on the tfl form: what an interpreter's Prepare finds, rule by rule; binding of an open batch."""

from tflq.shapes import (
    control,
    elementwise,
    indexing,
    movement,
    products,
    recurrent,
    slicing,
    stablehlo,
    state,
    windows,
)
from tflq.shapes.binding import bind_batch
from tflq.shapes.filling import contradictions, infer
from tflq.shapes.inference import Inference
from tflq.shapes.settling import Stated, settle
from tflq.shapes.site import RULES, Misfit, NotInferred, Site, shape

__all__ = [
    "RULES",
    "Inference",
    "Misfit",
    "NotInferred",
    "Site",
    "Stated",
    "bind_batch",
    "contradictions",
    "control",
    "elementwise",
    "indexing",
    "infer",
    "movement",
    "products",
    "recurrent",
    "settle",
    "shape",
    "slicing",
    "stablehlo",
    "state",
    "windows",
]
