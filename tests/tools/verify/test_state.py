"""Models with state: runs that follow each other are compared, in the interpreter and on the reference model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from support.harness import argument, const, interpret
from support.streaming import frames, streaming, streaming_module

import tflq
from tflq.formats.tflite.writer import write
from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import i1, i8
from tflq.tools.verify.runtimes import TosaRunner
from tflq.tools.verify.tflite_runner import TfliteRunner

pytestmark = pytest.mark.usefixtures("forked")

FIRST = ["random 0", "random 1", "minimum", "maximum", "zero point"]


def forgetful() -> bytes:
    """The network, but what it keeps of the first stream is not written back: a first run is as it should be."""
    module = streaming_module()
    write_back = next(op for op in module.main.ops if op.name == "tfl.assign_variable")
    module.main.ops.remove(write_back)
    return bytes(write(module))


@pytest.mark.parametrize("side", ["tflite", "tosa"])
def test_ten_runs_in_a_row_are_compared(side: Literal["tflite", "tosa"]) -> None:
    result = tflq.verify(streaming(), tflq.convert(streaming(), format=side).data)
    assert result.verdict == "equal", result.failures
    assert [run.inputs for run in result.runs] == [*FIRST, *["10 in a row"] * 10]


@pytest.mark.parametrize("side", ["tflite", "tosa"])
def test_a_difference_of_later_runs_is_seen(side: Literal["tflite", "tosa"]) -> None:
    result = tflq.verify(streaming(), tflq.convert(forgetful(), format=side).data)
    assert result.verdict == "differs"
    equal = [all(found.equal for _, found in run.outputs) for run in result.runs]
    assert all(equal[:6])
    assert not all(equal[6:])


def test_both_runners_keep_state_and_start_anew(tmp_path: Path) -> None:
    model, batches = streaming(), frames()
    wanted = [out for (out,) in interpret(model, batches)]
    (tmp_path / "m.tflite").write_bytes(model)
    (tmp_path / "m.tosa").write_bytes(tflq.convert(model, format="tosa").data)
    original = TfliteRunner(str(tmp_path / "m.tflite"), "reference", 60)
    converted = TosaRunner(str(tmp_path / "m.tosa"), 60)
    assert original.has_state
    assert converted.has_state
    try:
        for _ in range(2):
            for step, (batch, want) in enumerate(zip(batches, wanted, strict=True)):
                np.testing.assert_array_equal(original.run("", batch, {}, step)[0], want)
                np.testing.assert_array_equal(converted.run("", batch, {}, step)[0], want)
        for runner in (original, converted):
            np.testing.assert_array_equal(runner.run("", batches[0], {})[0], wanted[0])
    finally:
        original.close()
        converted.close()


def test_what_branches_write_is_told(tmp_path: Path) -> None:
    """Not of a conversion, where entries read and write: of another file, whose branch writes a variable."""
    flag, x, taken, other = (argument((), i1, "flag"), *(argument((2,), i8, name) for name in ("x", "taken", "other")))
    kept, same = (Op("tosa.identity", [v], [argument((2,), i8, name)]) for v, name in ((taken, "k"), (other, "s")))
    held, y = argument((2,), i8, "held"), argument((2,), i8, "y")
    main = [
        Op("tosa.variable", [const(np.zeros(2), i8)], [], {"name": "state"}),
        Op("tosa.cond_if", [flag, x], [y], {"then_graph": 1, "else_graph": 2}),
        Op("tosa.variable_read", [], [held], {"name": "state"}),
    ]
    functions = [
        Function("main", [flag, x], [y, held], main),
        Function("then", [taken], [kept.result], [Op("tosa.variable_write", [taken], [], {"name": "state"}), kept]),
        Function("else", [other], [same.result], [same]),
    ]
    path = tmp_path / "branches.tosa"
    path.write_bytes(tosa_bytes(Module(functions)))
    result = tflq.verify(path, path)
    assert [run.inputs for run in result.runs] == FIRST
    assert result.notes == ["only first runs are compared: branches or loops of a TOSA file write variables"]
