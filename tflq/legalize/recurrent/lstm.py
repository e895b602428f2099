"""UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM on int8, with gates and cell state in int16: the steps written out.

    gate = saturate(x . w * s + bias')      then + (h . r * s'), then + (c * p * s''), each saturated to int16
    i, f, o = logistic(gate), g = tanh(gate)                    Q3.12 → Q0.15
    c = saturate(f * c / 2^15 + i * g / 2^(30 + e))             2^e the cell state's scale; clipped
    h = saturate(o * tanh(c) * s + zero point)                  a projection of that, where there is one; clipped

Where the kernel has no tanh for e, tanh(c) is i, which its memory still holds, and i * g wraps to int16. The output
gate's peephole sees the new c. Quotients are rounded half away from zero. The products with the input are
one convolution for all steps and gates, those with the output state one for all gates.

Sources: kernels/unidirectional_sequence_lstm.cc, kernels/lstm.cc, kernels/lstm_eval.cc (LstmStepInteger8x8_16),
kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.recurrent import LSTM, UnidirectionalSequenceLSTM
from tflq.ir.core import Value
from tflq.ir.types import i16, i32
from tflq.legalize.recurrent.lstm_basic import basic_lstm
from tflq.legalize.recurrent.lstm_gates import Lstm, read_lstm
from tflq.legalize.recurrent.lstm_step import Step
from tflq.legalize.recurrent.signatures import misread
from tflq.legalize.recurrent.state import read_state, write_state
from tflq.legalize.reference.generic.accumulate import IGNORED_ZERO_POINT
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule

__all__: list[str] = []

_MOST_STEPS = 512


@rule(LSTM, UnidirectionalSequenceLSTM)
def lstm(op: LSTM | UnidirectionalSequenceLSTM, b: RuleBuilder) -> Answer:
    x = op.input
    if isinstance(op, LSTM) and op.kernel_type == "BASIC":
        return basic_lstm(op, b)
    if x.type.shape is None or not x.type.is_static or len(x.type.shape) not in (2, 3):
        raise NotApplicable("the batch or the number of steps is not known; bind the shapes of the inputs")
    parts = read_lstm(op, b)
    *outer, depth = (d or 0 for d in x.type.shape)
    time_major = len(outer) == 1 or isinstance(op, LSTM) or op.time_major
    steps, batch = ([1, *outer] if len(outer) == 1 else outer) if time_major else outer[::-1]
    if steps > _MOST_STEPS:
        raise NotApplicable(f"{steps} steps would be written out, more than {_MOST_STEPS}; shorten the sequence")
    try:
        step = Step(b, parts, batch, time_major, op.cell_clip, op.proj_clip)
        given = step.given(b.reshape(b.value(x), (steps * batch, 1, 1, depth)))
        rows = _all_steps(b, parts, step, given, steps, time_major)
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    whole = b.concat(rows, 0 if time_major else 1) if steps > 1 else rows[0]
    result = b.reshape(whole, (*outer, parts.outputs))
    note = f"{steps} step{'s'[: steps > 1]} written out; its state is variables"
    warnings = [misread(op), IGNORED_ZERO_POINT if parts.ignored_zero_point() else ""]
    return Rewritten([result], note=note, warning="; ".join(w for w in warnings if w))


def _all_steps(b: RuleBuilder, parts: Lstm, step: Step, given: Value, steps: int, time_major: bool) -> list[Value]:
    """The outputs, [1, batch, outputs] each, or [batch, 1, outputs]. The state is read before and written after."""
    batch, width = step.batch, step.width
    given = b.reshape(given, (steps, batch, width) if time_major else (batch, steps, width))
    h = read_state(b, parts.output_state, (batch, parts.outputs))
    c = b.cast(read_state(b, parts.cell_state, (batch, parts.cells)), i32)
    rows: list[Value] = []
    for t in range(steps):
        start, size = ((t, 0, 0), (1, batch, width)) if time_major else ((0, t, 0), (batch, 1, width))
        part = b.slice(given, start, size) if steps > 1 else given
        h, c = step.run(b.reshape(part, (batch, width)), h, c)
        rows.append(b.reshape(h, (1, batch, parts.outputs) if time_major else (batch, 1, parts.outputs)))
    write_state(b, parts.output_state, h)
    write_state(b, parts.cell_state, b.cast(c, i16))
    return rows
