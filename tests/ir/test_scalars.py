"""Scalar types: one object of a name."""

from __future__ import annotations

import copy
import pickle

import pytest

from tflq.ir.types import SCALARS, ScalarType, i8, named_scalar, scalar_type


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=str)
def test_copies_are_the_type_itself(scalar: ScalarType) -> None:
    assert pickle.loads(pickle.dumps(scalar)) is scalar  # noqa: S301 - its own
    assert copy.copy(scalar) is scalar
    assert copy.deepcopy([scalar])[0] is scalar


def test_a_name_means_what_it_meant_first() -> None:
    assert scalar_type("i8", 0, "opaque", "") is i8
    assert (i8.bits, i8.kind, i8.numpy) == (8, "int", "int8")
    assert named_scalar("i13") is named_scalar("i13")
