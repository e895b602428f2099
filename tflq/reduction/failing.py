"""Whether a model fails, and how: what reduction asks of every part that it tries."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

import tflq
from tflq.errors import InvalidModelError, UnsupportedError
from tflq.flatbuffer.layout import TOSA
from tflq.flatbuffer.structure import identify
from tflq.processes import Died, call
from tflq.verification.comparison import verify
from tflq.verification.difference import difference
from tflq.verification.inputs import given_inputs
from tflq.verification.runner import Child, Opened, RunError

Inputs: TypeAlias = Mapping[str, np.ndarray]
"""Arrays by input name."""


class Interpreter:
    """Runs the first functions of one model after another, with the reference kernels, in a process that is started
    again when a model takes it down."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._child: Child | None = None
        self._opened: Opened | None = None

    def run(self, model: bytes, inputs: Inputs | Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of a model on inputs by name, or in order. RunError if it does not run."""
        with tempfile.NamedTemporaryFile(prefix="tflq-", suffix=".tflite") as file:
            file.write(model)
            file.flush()
            try:
                opened = self._open(file.name)
                side = opened.head["entries"][""]["inputs"]
                return opened.run("", given_inputs(side, inputs) if isinstance(inputs, Mapping) else inputs)
            except RunError as error:
                if error.fatal:
                    self.close()
                raise

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = self._opened = None

    def _open(self, path: str) -> Opened:
        self._child = self._child or Child("the interpreter", self._timeout)
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        self._opened = Opened(self._child, {"model": path, "resolver": "reference"})
        return self._opened


class Predicate(Protocol):
    def __call__(self, model: bytes, inputs: Inputs, /) -> str:
        """The kind of failure of a TFLite model on these inputs; "" if it does not fail. Two failures of the same cause
        have the same kind, whatever else is in the model."""


Converted: TypeAlias = tuple[bytes, Mapping[str, Any]]
"""A converted model, and the JSON form of its report: differences that it announces are not failures."""


def _converted(model: bytes, options: Mapping[str, Any]) -> Converted:
    conversion = tflq.convert(model, **options)
    return conversion.data, conversion.report.to_json()


class Conversion:
    """Fails if a model cannot be converted, or if the converted one does not run or gives something else.

    Kinds: "differs"; "does not run" and "dies" (the converted model, in the interpreter); "refused: REASON"; "error:
    TYPE in FUNCTION"; "crash: SIGNAL" (the conversion). A model that does not run itself does not fail.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        convert: Callable[[bytes], bytes] | None = None,
        timeout: float = 120.0,
    ) -> None:
        """options: of `tflq.convert`. convert: the bytes of the converted model; by default `tflq.convert` with the
        options. It and the interpreter each run in a process of their own, for at most `timeout` seconds."""
        self._convert = convert or partial(_converted, options=options or {})
        self._timeout = timeout
        self._original, self._result = Interpreter(timeout), Interpreter(timeout)

    def __call__(self, model: bytes, inputs: Inputs) -> str:
        try:
            converted = call(_outcome, self._convert, model, timeout=self._timeout)
        except Died as error:
            return f"crash: {error}"
        if isinstance(converted, str):
            return converted
        result, report = converted
        try:
            want = self._original.run(model, inputs)
        except RunError:
            return ""
        if identify(result) is TOSA:
            return self._verified(model, result, report, inputs)
        kind = self._compared(want, result, inputs)
        return self._verified(model, result, report, inputs) if kind == "differs" else kind

    def close(self) -> None:
        """Ends the interpreters' processes."""
        self._original.close()
        self._result.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compared(self, want: list[np.ndarray], converted: bytes, inputs: Inputs) -> str:
        try:
            got = self._result.run(converted, list(inputs.values()))
        except RunError as error:
            return "dies" if error.fatal else "does not run"
        equal = len(want) == len(got) and all(difference(g, w).equal for g, w in zip(got, want, strict=True))
        return "" if equal else "differs"

    def _verified(self, model: bytes, converted: bytes, report: Mapping[str, Any], inputs: Inputs) -> str:
        """The kind of failure, apart from differences that the conversion or the original's kernels explain."""
        options: dict[str, Any] = {"report": report} if report else {}
        options |= {"inputs": inputs, "interface": False, "timeout": self._timeout}
        return {"differs": "differs", "failed": "does not run"}.get(verify(model, converted, **options).verdict, "")


def _outcome(convert: Callable[[bytes], Converted | bytes], model: bytes) -> Converted | str:
    """The converted model, or the kind of failure. A converter without a report returns the model alone."""
    try:
        converted = convert(model)
        return converted if isinstance(converted, tuple) else (converted, {})
    except UnsupportedError as error:
        return f"refused: {error.reason.what}"
    except InvalidModelError:
        return ""  # the part is not a valid model
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is what we look for
        return f"error: {type(error).__name__} in {_place(error)}"


def _place(error: Exception) -> str:
    """The function of ours that an error comes from."""
    ours = str(Path(tflq.__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(ours)]
    return f"{Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else "?"
