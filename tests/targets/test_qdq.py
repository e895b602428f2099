"""rules/qdq.toml: what stands between casts is what the interpreter computes as its parameters say."""

from __future__ import annotations

from tflq.files import resource
from tflq.onnx.context import lowering
from tflq.onnx.qdq import pattern
from tflq.targets.load import load_target

LISTED = load_target(resource("rules/qdq.toml")).kernels


def test_signatures_are_those_of_kernels_that_were_measured() -> None:
    measured = load_target("kernels").kernels
    for name, signatures in LISTED.items():
        known = {without_limits(signature.text) for signature in measured[name]}
        assert {signature.text for signature in signatures} <= known, name


_LIMITS = ("operand_scale_from", "positive_scale", "power_of_two_shifts", "scale_ratio_below")


def without_limits(text: str) -> str:
    """A line without the zero points and scales that the interpreter refuses: on real numbers there are none."""
    types, *clauses = text.replace("qi16:0", "qi16").split("; ")
    return "; ".join([types, *(c for c in clauses if c.split()[0] not in _LIMITS)])


def test_each_operator_has_a_pattern_or_a_form_on_floats() -> None:
    for name in LISTED:
        assert pattern.named(f"tfl.{name}") or lowering.named(f"tfl.{name}"), name
