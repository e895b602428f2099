"""A network run on all samples at once, part by part, so that what follows may still be changed.

Of each sample the values are kept that operators, which have not run yet, will read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import numpy as np

from tflq.dialects.effects import callees, is_pure
from tflq.formats.sources import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import copied
from tflq.tools.quantize.calibration.collecting import run


def runs_in_parts(function: Function) -> bool:
    """Whether each operator computes its results from its operands alone."""
    return all(is_pure(op) and not callees(op) and not op.regions for op in function.ops)


class Stepwise:
    """A function that runs in parts. prefix: the path of files of parts, without what tells them apart."""

    def __init__(
        self, function: Function, inputs: Sequence[Value], samples: Sequence[Sequence[np.ndarray]], prefix: str
    ) -> None:
        self._function = function
        self._values = [dict(zip(inputs, arrays, strict=True)) for arrays in samples]
        self._done = set[Op]()
        self._prefix = prefix
        self._parts = 0

    def advance(self, value: Value, later: Collection[Value]) -> list[np.ndarray]:
        """The arrays of a value, of each sample: runs what it needs and has not run. later: what will be asked for."""
        if value not in self._values[0]:
            self._run(value, {value, *later})
        return [values[value] for values in self._values]

    def _run(self, value: Value, needed: set[Value]) -> None:
        part = self._missing(value)
        self._done.update(part)
        read = {v for op in self._function.ops if op not in self._done for v in op.present_operands} | needed
        inputs = [v for v in dict.fromkeys(v for op in part for v in op.present_operands) if v in self._values[0]]
        outputs = [v for op in part for v in op.results if v in read]
        path = self._written(part, inputs, outputs)
        for values in self._values:
            arrays = run(path, "", [values[v] for v in inputs])
            values.update(zip(outputs, arrays, strict=True))
            for gone in [v for v in values if v not in read]:
                del values[gone]
        os.unlink(path)

    def _missing(self, value: Value) -> list[Op]:
        """The operators that a value needs and that have not run, in order."""
        needed, waiting = set[Op](), [value.producer]
        while waiting:
            op = waiting.pop()
            if op is not None and op not in self._done and op not in needed:
                needed.add(op)
                waiting += [v.producer for v in op.present_operands if v not in self._values[0]]
        return [op for op in self._function.ops if op in needed]

    def _written(self, part: Sequence[Op], inputs: Sequence[Value], outputs: Sequence[Value]) -> str:
        """The file of a part."""
        self._parts += 1
        path = f"{self._prefix}.{self._parts}.tflite"
        known = {v: Value(v.type, v.name) for v in inputs}
        ops = copied(part, known)
        arguments = [known[v] for v in inputs]
        write(Module([Function("main", arguments, [known[v] for v in outputs], ops)]), path)
        return path
