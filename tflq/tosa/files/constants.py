"""The constants of a TOSA flatbuffer: bytes of tensors and shapes, as views of the file where their form allows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tflq.errors import InvalidModelError, Refused
from tflq.ir.core import Buffer
from tflq.ir.types import TensorType, i1, i64
from tflq.tosa.files.dtypes import ELEMENTS, stored_size, unpacked

__all__ = ["Constants", "tensor_type"]

_MOST_DIMS: Final = 32
"""MAX_RANK without a level (TOSA specification, Levels)."""


def tensor_type(fields: Mapping[str, Any]) -> TensorType:
    """The type of a `TosaTensor`. Refused, a clause, if the IR has none."""
    name = fields["type"]
    element = ELEMENTS.get(name)
    if element is None:
        raise Refused(f"the type {name} is not one of TOSA 1.0's that can be read")
    scale = fields["scale_data"]
    if fields["scale_type"] != "UNKNOWN" or fields["block_shape"] != "UNKNOWN" or (scale is not None and scale.size):
        raise Refused("it is block-scaled (MXFP)")
    if fields["is_unranked"]:
        raise Refused("its rank is not known")
    shape = () if fields["shape"] is None else fields["shape"]
    if len(shape) > _MOST_DIMS:
        raise Refused(f"it has {len(shape)} dims, and TOSA's tensors {_MOST_DIMS} at most")
    return TensorType(tuple(None if d < 0 else int(d) for d in shape), element)


class Constants:
    """Makes buffers of what a file stores; tensors that share their bytes share the buffer."""

    def __init__(self, data: memoryview) -> None:
        self._file = np.frombuffer(data, np.uint8)
        self._known: dict[tuple[int, int, bool], Buffer] = {}

    def tensor(self, fields: Mapping[str, Any], type: TensorType, where: str) -> Buffer:
        """The buffer of a constant tensor."""
        if type.shape is None or None in type.shape:
            raise InvalidModelError(f"{where}.shape", "a constant's shape has to be known")
        element = type.storage
        data = self._bytes(fields, where)
        stored = self._sized(data, stored_size(math.prod(d or 0 for d in type.shape), element), where)
        if element is i1 and (stored > 1).any():
            raise InvalidModelError(f"{where}.data", "a BOOL is neither 0 nor 1")
        wide = element == i64
        key = (stored.__array_interface__["data"][0], stored.size, wide)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Buffer(unpacked(stored, element))
        return found

    def shape(self, fields: Mapping[str, Any], where: str) -> np.ndarray:
        """The numbers of a constant shape."""
        data = np.zeros(0, np.uint8) if fields["data"] is None else fields["data"]
        stored = self._sized(data, 8 * fields["rank"], where)
        return np.array(stored).view(np.int64)

    def _bytes(self, fields: Mapping[str, Any], where: str) -> np.ndarray:
        """A tensor's bytes, in the flatbuffer or, of a large file, behind it."""
        data, offset, size = fields["data"], fields["offset"], fields["size"]
        inside = np.zeros(0, np.uint8) if data is None else data
        if offset <= 1:
            return inside
        if inside.size:
            raise InvalidModelError(f"{where}.offset", f"data both inside ({inside.size} bytes) and at {offset}")
        if offset + size > self._file.size:
            reason = f"bytes {offset} to {offset + size} are outside the file of {self._file.size}"
            raise InvalidModelError(f"{where}.offset", reason)
        return self._file[offset : offset + size]

    def _sized(self, data: np.ndarray, size: int, where: str) -> np.ndarray:
        """The data without padding; writers may fill it up to a multiple of 8 bytes."""
        if data.size not in (size, size + -size % 8):
            raise InvalidModelError(f"{where}.data", f"{data.size} bytes, its type and shape ask for {size}")
        return data[:size]
