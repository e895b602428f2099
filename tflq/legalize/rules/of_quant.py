"""The rules of the casts of `quant`, which text has."""

from __future__ import annotations

from typing import Final

from tflq.dialects.quant.casts import Dcast, Qcast, Scast
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

quant_casts = later("reference.quant_casts")

RULES: Final[Rules] = {
    Dcast: (quant_casts.dcast,),
    Qcast: (quant_casts.qcast,),
    Scast: (quant_casts.scast,),
}
