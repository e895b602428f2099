"""Exceptions of which the report warns, where a converted model gives another result than by its parameters or in
the interpreter. And parameters and types that kernels of hybrid operators disregard or do not take.

Rules state what parameters kernels disregard, and note what C++ leaves undefined (`note_undefined`); `settled` finds
out whether that shows in a result, and says how far it is from the real value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from tflq.dialects.declare import trait_of
from tflq.dialects.forms import stays_quantized_reason
from tflq.dialects.parameters import HybridKernel, Interpolates
from tflq.dialects.tfl.convolution import DepthwiseConv2D, FullyConnected
from tflq.dialects.tfl.indexing import EmbeddingLookup
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i1,
    i16,
    ui8,
)
from tflq.legalize.probing import Distance, distance, kernel_name
from tflq.legalize.rule import FOLLOWS_PARAMETERS, NotApplicable, Rewritten, Rule, RuleBuilder


class Caveat:
    """A warning for users about a result. `reproduced`: the result is the interpreter's, which differs from the
    parameters. Else it is the result by the parameters, and the interpreter's differs, or is not the same
    everywhere. `remedy`: what the user can do, shown after each warning."""

    __slots__ = ("remedy", "reproduced", "text")

    def __init__(self, text: str, reproduced: bool, remedy: str) -> None:
        self.text: Final = text
        self.reproduced: Final = reproduced
        self.remedy: Final = remedy


_QUANTIZED_AGAIN = "quantize the model again with scales closer to each other, or convert with --semantics real"

EXCEPTIONS: dict[str, Caveat] = {
    "disregarded": Caveat(
        "the kernel ignores parameters that the model states",
        reproduced=True,
        remedy="keep it if the model was tested in the interpreter, else convert with --semantics real",
    ),
    "undefined": Caveat(
        "the kernel comes to something that C++ leaves undefined", reproduced=True, remedy=_QUANTIZED_AGAIN
    ),
    "range": Caveat("the kernel's arithmetic leaves the range of its types", reproduced=True, remedy=_QUANTIZED_AGAIN),
    "unsettled": Caveat(
        "the kernel's result is undefined in C++, and interpreters differ",
        reproduced=False,
        remedy="use it, but do not compare it with an interpreter's result",
    ),
    "inexact": Caveat(
        "no integer arithmetic here gives what the kernel does",
        reproduced=False,
        remedy="state sizes that are open (--batch, --shape), else allow for the difference",
    ),
    "broken": Caveat(
        "the kernel's result says nothing of the model",
        reproduced=False,
        remedy="use it, but do not compare it with the result of the reference kernels",
    ),
    "state": Caveat(
        "the state outlives reset_all_variables()",
        reproduced=True,
        remedy="for a new sequence create the interpreter anew, or convert with --reset-signature and call "
        "get_signature_runner('tflq_reset')()",
    ),
}
"""By the name that a row of the report with a warning has. `docs/exceptions.md` has what was measured for each."""

_UNDEFINED = "{what}, which C++ leaves undefined; the result is what kernels compiled for x86-64 give{far}"
_UNSETTLED = "{what}, which C++ leaves undefined, and interpreters differ{far}; " + FOLLOWS_PARAMETERS
_RANGE = "at these scales the kernel's sums or products exceed its types; the result is the kernel's{far}"
_USUAL = (1e-12, 1e6)
"""Scales between these do not take the kernels' float32 multipliers out of range."""


def remedies(exceptions: Iterable[str]) -> str:
    """The remedies for warnings of these exceptions; empty if there are none, or they have no names."""
    return "; ".join(dict.fromkeys(EXCEPTIONS[name].remedy for name in exceptions if name))


def settled(rule: Rule, op: Op, answer: Rewritten, b: RuleBuilder) -> Rewritten:
    """A rule's answer with the warnings that its results need; none for what changes no value. b: its builder."""
    undefined = b.undefined
    if answer.warning and not EXCEPTIONS[answer.exception].reproduced:
        return answer
    unusual = _unusual(op)
    if not (undefined or answer.warning or unusual):
        return answer
    far = distance(rule, op, b.kernel_set)
    counts = [c for c in undefined.values() if c is not None]
    if far is None and counts and len(counts) == len(undefined) and not answer.warning:
        far = Distance(max(counts))
    if far is not None and not far.shows:
        return Rewritten(answer.results, answer.note, exception=answer.exception)
    if not answer.warning and not undefined and (far is None or not _plain(op, far)):
        return answer
    tail = "" if far is None else f", {far}"
    if undefined:
        words, name = _UNDEFINED.format(what=" and ".join(undefined), far=tail), "undefined"
    elif answer.warning:
        return answer
    else:
        words, name = _RANGE.format(far=tail), "range"
    warning = "; ".join(w for w in (answer.warning, words) if w)
    return Rewritten(answer.results, answer.note, warning, name)


BY_PARAMETERS = "quantize the model again with scales closer to each other, or take the exact form (plain .onnx)"
"""The remedy where a target computes by parameters, and the interpreter's kernel does not."""


def unlike_kernel(rule: Rule, op: Op, answer: Rewritten, b: RuleBuilder) -> str:
    """The difference of a kernel's result from the parameters, in words, for a target that computes by them; empty
    if there is none. answer: the rule's, which does as the kernel."""
    answered = settled(rule, op, answer, b)
    if not answered.warning or not EXCEPTIONS[answered.exception].reproduced:
        return ""
    exceeded = "its sums or products exceed its types" if answered.exception == "range" else ""
    why = "; ".join(w for w in (answer.warning, " and ".join(b.undefined), exceeded) if w)
    far = distance(rule, op, b.kernel_set)
    return f"the interpreter's kernel gives something else than the parameters say{f', {far}' if far else ''}: {why}"


def inexact(rule: Rule, op: Op, answer: NotApplicable, b: RuleBuilder) -> dict[str, str]:
    """Warnings that the result is not the kernel's, each with its exception."""
    warnings = {answer.warning: "inexact"} if answer.warning else {}
    if answer.unsettled:
        far = distance(rule, op, b.kernel_set)  # the result of one of them
        words = _UNSETTLED.format(what=answer.unsettled, far="" if far in (None, Distance(0)) else f": {far}")
        warnings[words] = "unsettled"
    return warnings


def _unusual(op: Op) -> bool:
    low, high = _USUAL
    elements = (value.type.element for value in op.tensors)
    return any(isinstance(e, UniformQuantizedType) and not low <= e.scale <= high for e in elements)


def _plain(op: Op, far: Distance) -> bool:
    """Whether a distance is more than the error of a kernel's approximations. Comparisons round on purpose, and int16
    tables interpolate."""
    storage = op.result.type.storage
    interpolated = storage is i16 and trait_of(op, Interpolates) is not None
    return storage is not i1 and not interpolated and far.counts > 1 << max(storage.bits - 6, 0)


# Hybrid operators: they compute in float on quantized constants.
#
# A hybrid kernel quantizes the activations as it runs, or dequantizes its weights, or rows of a table. If none takes
# the weights at hand, the constants become float. No hybrid kernel reads a zero point; some refuse one other than 0.
#
# Sources: kernels/conv.cc, depthwise_conv.cc (whose hybrid kernel reads a scale per channel), transpose_conv.cc,
# fully_connected.cc, batch_matmul.cc, embedding_lookup.cc.


_SPARSE_BLOCK = 16
_NO_KERNEL = HybridKernel(())


def disregarded(op: Op) -> str:
    """The parameters of its constants that a hybrid kernel disregards, in words; empty if there are none."""
    for value in op.operands:
        if value is None or not value.type.quantized or stays_quantized_reason(op) is not None:
            continue
        if value.type.storage == ui8:
            return f"the kernel reads '{value.name}', which is uint8, as int8 without a zero point"
        blocks = isinstance(value.type.element, UniformQuantizedSubChannelType)
        if blocks and value.type.storage in (trait_of(op, HybridKernel) or _NO_KERNEL).scaleless:
            return f"the kernel reads the scales of '{value.name}', one per block, as 0"
        if blocks and isinstance(op, FullyConnected):
            return (
                f"the reference kernels ignore the scales per block of '{value.name}', the optimized ones a fused "
                "activation"
            )
        if isinstance(op, EmbeddingLookup) and value.type.storage.bits < 8:
            from tflq.analysis.hybrid import rows_misread

            if rows_misread(op.ids, value):
                return f"the kernel reads rows of '{value.name}' from whole bytes on, with elements of other rows"
        if _zero_points(value).any():
            return f"the kernel ignores the zero points of '{value.name}', which are not 0"
    return ""


def _in_blocks(op: Op, sparsity: Mapping[str, Any]) -> bool:
    """Whether sparse weights are in the blocks of the only hybrid kernel that reads sparse weights."""
    blocks, levels = sparsity["block_map"], sparsity["dim_metadata"]
    whole = blocks is not None and len(blocks) == 1 and levels[-1]["dense_size"] == _SPARSE_BLOCK
    return isinstance(op, FullyConnected) and whole


def _zero_points(value: Value) -> np.ndarray:
    element = value.type.element
    return np.atleast_1d(getattr(element, "zero_points", getattr(element, "zero_point", 0)))


def without_kernel(op: Op, *, real: bool = False) -> str:
    """Why no kernel computes a hybrid op on its constants as they are; empty if one does. `real`: a kernel that
    disregards parameters does not count."""
    if stays_quantized_reason(op) is not None:
        return ""
    kernel, known = kernel_name(op), trait_of(op, HybridKernel) or _NO_KERNEL
    for place, value in enumerate(op.operands):
        if value is None or not value.type.quantized:
            continue
        element, storage = value.type.element, value.type.storage
        blocks = isinstance(element, UniformQuantizedSubChannelType)
        if blocks and storage not in known.blockwise + known.scaleless:
            return f"{kernel} has no kernel for float activations with {storage} blockwise constants"
        if place != 1 or storage not in known.weights:
            return f"{kernel} has no kernel for float activations with {storage} constants"
        if "sparsity" in value.info and not _in_blocks(op, value.info["sparsity"]):
            return (
                f"{kernel} has no kernel for float activations with sparse constants but in blocks of {_SPARSE_BLOCK}"
            )
        one_scale = not isinstance(element, UniformQuantizedPerAxisType)
        if isinstance(op, DepthwiseConv2D) and one_scale and value.type.shape and value.type.shape[-1] != 1:
            return f"{kernel} on float activations reads a scale per channel, and there is one"
        zeros = _zero_points(value).reshape(-1)
        if (storage in known.symmetric and zeros.any()) or (isinstance(op, EmbeddingLookup) and zeros[0]):
            return f"{kernel} takes no zero point of '{value.name}' but 0"
        axis = getattr(element, "axis", 0)
        if isinstance(op, EmbeddingLookup) and axis:
            return f"{kernel} takes scales per row, and those of '{value.name}' are along dim {axis}"
        last = (value.type.shape or (0,))[-1] or 0
        shorter = isinstance(element, UniformQuantizedSubChannelType) and last % element.block_sizes[-1]
        if storage in known.blockwise and shorter:
            return f"{kernel} takes whole blocks, and the last of '{value.name}' is shorter"
    return disregarded(op) if real else ""
