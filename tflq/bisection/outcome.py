"""What a bisection found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["JSON_VERSION", "Bisection", "Checked", "Finding"]

JSON_VERSION = 1


@dataclass(frozen=True, slots=True)
class Checked:
    """The model after a pass that changed something. by: what ran it; "": nothing can, `note` says why."""

    number: int
    name: str
    by: Literal["interpreter", "evaluator", ""]
    equal: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The pass that first changed a result, and where that is first seen.

    unchecked: passes before it that may be it, too, since nothing can run the model after them. rule: the function of
    legalization that answered for the operator. before, after: what the operator was, and what the pass made of it.
    operator: its number in its subgraph; None where the tensor belongs to none. inputs: which set of inputs shows it.
    difference: how far the tensor is from the original's.
    """

    number: int
    name: str
    unchecked: tuple[str, ...]
    tensor: str
    inputs: str
    difference: str
    subgraph: int = 0
    operator: int | None = None
    opcode: str = ""
    path: str = ""
    reason: str = ""
    warning: str = ""
    rule: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """What became of a model's results, pass by pass: what `tflq.bisect` returns.

    source: the model's path. interpreter: what ran the original.
    steps: the model after each pass that changed something: `number`, `name`, what it was run `by`, whether the results
        are `equal`, and a `note`.
    finding: the pass that first changed a result (`name`, `opcode`, `operator`, `rule`, `tensor`, `difference`, ...);
        None if the end gives what the original does.
    sets: the sets of inputs.
    """

    source: str
    interpreter: str
    steps: tuple[Checked, ...]
    finding: Finding | None = None
    sets: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """A versioned form."""
        return {"format": "tflq.bisection", "version": JSON_VERSION, **asdict(self)}
