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
from tflq.shapes.site import RULES, NotInferred, Site, shape

__all__ = [
    "RULES",
    "Inference",
    "NotInferred",
    "Site",
    "bind_batch",
    "contradictions",
    "control",
    "elementwise",
    "indexing",
    "infer",
    "movement",
    "products",
    "recurrent",
    "shape",
    "slicing",
    "stablehlo",
    "state",
    "windows",
]
