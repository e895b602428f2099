"""The targets of quantization schemes, which are made of the measured kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.data.schemes import SCHEMES as MADE
from scripts.data.schemes import Scheme, page
from tflq.base.files import resource
from tflq.dialects.tfl import op_name
from tflq.ir.ops import op_class
from tflq.targets.load import SCHEMES, load_kernels, load_target

MEASURED = load_kernels("kernels")


def text(name: str) -> str:
    return Path(resource(f"rules/{name}.toml")).read_text(encoding="utf-8")


def test_there_is_a_file_for_each_scheme() -> None:
    assert [scheme.name for scheme in MADE] == list(SCHEMES)


@pytest.mark.parametrize("scheme", MADE, ids=lambda scheme: scheme.name)
def test_the_files_are_current(scheme: Scheme) -> None:
    assert text(scheme.name) == page(scheme), "run scripts/make_data.py schemes"


@pytest.mark.parametrize("name", SCHEMES)
def test_every_kernel_is_in_or_left_out_with_a_reason(name: str) -> None:
    left_out = dict(re.findall(r"^#   (\w+): (.+)$", text(name), re.MULTILINE))
    listed = load_kernels(name)
    further = next(scheme.further for scheme in MADE if scheme.name == name)
    assert set(listed) | set(left_out) == set(MEASURED) | set(further)
    assert not set(listed) & set(left_out)
    assert all(left_out.values())


@pytest.mark.parametrize("name", SCHEMES)
def test_accumulators_follow_and_storage_is_one(name: str) -> None:
    target = load_target(name)
    assert target.name == name
    scheme = next(scheme for scheme in MADE if scheme.name == name)
    allowed = {scheme.activations, scheme.weight, "i32", "i64"}
    narrow = {"i4"} if scheme.weight == "i8" else set()
    for kernel, signatures in target.kernels.items():
        declared = op_class(op_name(kernel))
        assert declared is not None
        accumulates = any(slot.name == "bias" for slot in declared.operand_slots)
        for signature in signatures:
            assert accumulates == any(n == "multiplier_accumulator_scale" for n, _ in signature.constraints)
            ports = [port for side in signature.sides for slot in side for port in slot.ports if port.kinds]
            of_kernel = allowed | narrow if kernel in ("conv_2d", "fully_connected") else allowed
            assert {port.storage.name for port in ports if port.storage} <= of_kernel
            if accumulates:  # the bias has an axis if the weights have one
                assert len({port.wants_axis for port in ports if port.storage and port.zero_point == 0}) == 1 or (
                    scheme.symmetric or scheme.weight == "ui8"
                )


def test_a_scheme_is_read_once() -> None:
    assert load_kernels("int8") is load_kernels("int8")


def test_weights_are_per_channel_first() -> None:
    for name in ("int8", "int16x8"):
        for kernel in ("conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv"):
            ports = [port for slot in load_kernels(name)[kernel][0].sides[0] for port in slot.ports]
            assert [port.low for port in ports if port.wants_axis] == [-127, None]
