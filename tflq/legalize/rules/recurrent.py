"""The rules of recurrent operators: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.recurrent import LSTM, SVDF, UnidirectionalSequenceLSTM
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

lstm = later("recurrent.lstm")
svdf = later("recurrent.svdf")

RULES: Final[Rules] = {
    LSTM: (lstm.lstm,),
    UnidirectionalSequenceLSTM: (lstm.lstm,),
    SVDF: (svdf.svdf,),
}
