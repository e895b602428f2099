"""Forms in float32: what they share.

A form takes whole numbers in float32, prepared by a sum (`prepare`): accumulators, which a convolution shifts in its
bias and whose sign it changes in its weights, or any others. It gives whole numbers, levels less `offset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

import numpy as np

from tflq.base.results import has_form, returns
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.forms import Form, FusedClamp, Ops, X
from tflq.numerics.requantize.numpy_ops import NUMPY, NumpyOps

RELU6: Final = FusedClamp("RELU6", 0.0, 6.0, 0)
N1_TO_1: Final = FusedClamp("RELU_N1_TO_1", -1.0, 1.0, 128)


class Prepare(NamedTuple):
    """The numbers that a form is applied to: x + add, or add - x with `negate`, by a rectifier with `relu`. add: whole
    numbers [1 or C]."""

    negate: bool
    add: np.ndarray
    relu: bool


class FloatForm(Form):
    """A form in float32: a dataclass whose fields are constants, float32 [C] each. The last `optional` ones can be
    None, where the formula has no such term."""

    optional: ClassVar[int] = 0
    zero_centred: ClassVar[bool] = False
    """Whether 0 must be in the middle of level 0."""
    m: np.ndarray

    def __init_subclass__(cls) -> None:
        returns(cls.are_constants)(cls.constants)

    @classmethod
    def fit(cls, climb: Climb) -> Self | None:
        """The form with these thresholds; None without a proof."""
        raise NotImplementedError

    @classmethod
    def constants(
        cls, thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
    ) -> tuple[np.ndarray, ...]:
        """The constants of `fit` as a cache stores them, empty where there is no such term; none without a proof."""
        fit = cls.fit(Climb(thresholds, slope, low, high, bottom))
        return () if fit is None else tuple(np.zeros(0, np.float32) if v is None else v for v in fit._terms())

    @classmethod
    def of_constants(cls, constants: Sequence[np.ndarray]) -> Self | None:
        """The form with `constants`; None if there are none."""
        first = len(constants) - cls.optional
        terms = (v if at < first or v.size else None for at, v in enumerate(constants))
        return cls(*terms) if constants else None

    @classmethod
    def are_constants(cls, arrays: Sequence[np.ndarray], _: Any, __: Any, low: np.ndarray, *___: Any) -> bool:
        """Whether arrays can be constants of this form for so many channels."""
        count = len(fields(cls))  # type: ignore[arg-type]
        shapes = [[low.shape]] * (count - cls.optional) + [[low.shape, (0,)]] * cls.optional
        return not arrays or (
            len(arrays) == count
            and all(has_form(array, np.float32, *each) for array, each in zip(arrays, shapes, strict=True))
        )

    def _terms(self) -> list[np.ndarray | None]:
        return list(vars(self).values())

    def of_channels(self, channels: np.ndarray) -> Self:
        """The form of some channels."""
        return type(self)(*[None if v is None else v[channels] for v in self._terms()])

    def store(self, channels: np.ndarray, fit: FloatForm) -> None:
        """Take the constants of some channels from another form of this class."""
        for target, new in zip(self._terms(), fit._terms(), strict=True):
            if target is not None and new is not None:
                target[channels] = new

    @property
    def live(self) -> np.ndarray:
        """Whether a channel's result depends on x, bool [C]."""
        return self.m > 0

    def prepare(self) -> Prepare:
        """The sum that the form takes."""
        raise NotImplementedError

    def offset(self, bottom: int) -> int:  # noqa: ARG002
        """The number that results are less than levels, for levels from `bottom` on."""
        return 0

    def falling(self, bottom: int) -> FloatForm | None:  # noqa: ARG002
        """The form with these constants that takes sums of the other sign, for levels from `bottom` on, if any."""
        return None

    def apply_to_whole(self, x: X, ops: Ops[X]) -> X:
        """The form of whole numbers that are not prepared."""
        negate, add, relu = self.prepare()
        if negate:
            return self.apply(ops.sub(ops.row(add), x, relu=relu), ops)
        return self.apply(ops.add_row(x, add) if add.any() else x, ops)

    def __call__(self, x: np.ndarray, ops: NumpyOps = NUMPY) -> np.ndarray:
        """The form of integers [..., C], in float32."""
        negate, add, relu = self.prepare()
        if negate:
            x = add.astype(np.float64) - x
        elif add.any():
            x = x + add.astype(np.float64)
        return self.apply((np.maximum(x, 0) if relu else x).astype(np.float32), ops)


AnyForm = TypeVar("AnyForm", bound=FloatForm)
