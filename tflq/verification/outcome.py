"""What a comparison of two models found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Literal

from tflq.verification.difference import Difference

__all__ = ["JSON_VERSION", "Divergence", "Layers", "Run", "Verdict", "Verification"]

JSON_VERSION = 1

Verdict = Literal["equal", "differs", "failed"]


@dataclass(frozen=True, slots=True)
class Run:
    """One entry of both models run on one set of inputs. `skipped` says why the original cannot be run on it, if so."""

    entry: str  # "" or a signature's key
    inputs: str
    outputs: tuple[tuple[str, Difference], ...] = ()
    skipped: str = ""

    def to_json(self) -> dict[str, Any]:
        outputs = [{"name": name, **d.to_json()} for name, d in self.outputs]
        return {"entry": self.entry, "inputs": self.inputs, "skipped": self.skipped, "outputs": outputs}


@dataclass(frozen=True, slots=True)
class Divergence:
    """An operator result that differs."""

    entry: str
    operator: int
    opcode: str
    tensor: str
    difference: Difference

    def __str__(self) -> str:
        where = f"signature '{self.entry}', " if self.entry else ""
        return f"{where}operator {self.operator} ({self.opcode}), tensor '{self.tensor}': {self.difference}"

    def to_json(self) -> dict[str, Any]:
        place = {"entry": self.entry, "operator": self.operator, "opcode": self.opcode, "tensor": self.tensor}
        return place | self.difference.to_json()


@dataclass(frozen=True, slots=True)
class Layers:
    """Operator results of the original compared with those of the same name: in operator order, the diverging ones."""

    results: int  # operator results that the original has
    compared: int
    diverging: tuple[Divergence, ...]

    @property
    def first(self) -> Divergence | None:
        """The first that differs: where to look."""
        return self.diverging[0] if self.diverging else None

    def to_json(self) -> dict[str, Any]:
        diverging = [d.to_json() for d in self.diverging]
        return {"results": self.results, "compared": self.compared, "diverging": diverging}


@dataclass
class Verification:
    """The outcome of `tflq.verify`. `equal` is the answer; the rest says what it rests on or what differs.

    failures: a model that the interpreter cannot open, that aborted or that took too long, by name, and how.
    interface: differences of names, shapes, types, quantization and signatures, one sentence each.
    """

    a: str
    b: str
    resolver: str
    interpreter: str = ""
    failures: list[str] = field(default_factory=list)
    interface: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    layers: Layers | None = None

    @property
    def verdict(self) -> Verdict:
        """`failed` if a run could not be made, so that the models may be equal or not."""
        ran = any(not run.skipped for run in self.runs)
        if self.failures or not (ran or self.interface):
            return "failed"
        layers_differ = self.layers is not None and bool(self.layers.diverging)
        outputs_differ = any(not d.equal for run in self.runs for _, d in run.outputs)
        return "differs" if self.interface or layers_differ or outputs_differ else "equal"

    @property
    def equal(self) -> bool:
        return self.verdict == "equal"

    @property
    def outputs(self) -> dict[tuple[str, str], Difference]:
        """Per (entry, output): the differences of all runs together."""
        found: dict[tuple[str, str], list[Difference]] = {}
        for run in self.runs:
            for name, d in run.outputs:
                found.setdefault((run.entry, name), []).append(d)
        return {key: reduce(add, differences) for key, differences in found.items()}

    def to_json(self) -> dict[str, Any]:
        """A versioned, documented form: README.md, "JSON"."""
        outputs = [{"entry": e, "name": n, **d.to_json()} for (e, n), d in self.outputs.items()]
        return {
            "format": "tflq.verification",
            "version": JSON_VERSION,
            "a": self.a,
            "b": self.b,
            "interpreter": self.interpreter,
            "resolver": self.resolver,
            "verdict": self.verdict,
            "failures": self.failures,
            "interface": self.interface,
            "outputs": outputs,
            "runs": [run.to_json() for run in self.runs],
            "layers": None if self.layers is None else self.layers.to_json(),
        }
