"""Shape inference on the tfl form: what an interpreter's Prepare finds, rule by rule; binding of an open batch."""

from tflq.shapes.binding import bind_batch
from tflq.shapes.filling import contradictions, infer
from tflq.shapes.inference import Inference
from tflq.shapes.settling import Stated, settle
from tflq.shapes.site import Misfit, NotInferred, Site, shape_of

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
    "shape_of",
]
