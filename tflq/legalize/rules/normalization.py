"""The rules of normalization: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.normalization import L2Normalization, LocalResponseNormalization
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

square_sums = later("real.generic.square_sums")
normalization = later("reference.normalization")

RULES: Final[Rules] = {
    L2Normalization: (normalization.l2_normalization, square_sums.l2_normalization),
    LocalResponseNormalization: (square_sums.local_response,),
}
