"""Equal tables become one: selection makes a constant for each operator, of up to 64 KiB.

Only what GATHER looks up is compared, since weights are hardly ever equal; CSE merges constants that share a buffer,
and small ones by itself.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.effects import is_variable
from tflq.dialects.forms import Form
from tflq.dialects.tfl.indexing import Gather
from tflq.ir.core import Buffer, Module

__all__ = ["ShareTables"]

_LEAST: Final = 4096
"""Bytes up to which CSE compares constants by content."""


class ShareTables(Pass):
    """Equal tables that GATHER looks up share their bytes, in whichever function."""

    name: ClassVar[str] = "share-tables"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        known: dict[int, list[Buffer]] = {}
        shared = False
        for op in module.ops():
            if not isinstance(op, Gather) or not op.input.is_constant or is_variable(op.input):
                continue
            own = op.input.buffer
            if own is None or own.external or not _LEAST < own.data.size <= 1 << 16:
                continue
            alike = known.setdefault(hash(own.data.tobytes()), [])
            first = next((b for b in alike if b is own or np.array_equal(b.data, own.data)), own)
            if first is own:
                alike.append(own)
            else:
                op.input.buffer, shared = first, True
        return PassResult(module, shared)
