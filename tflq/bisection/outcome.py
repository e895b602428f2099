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
    """The pass that first changed a result, and where that first shows: `Bisection.finding`.

    Attributes:
        number: Number of the pass.
        name: Name of the pass.
        unchecked: Earlier passes that may be the cause as well, because nothing can run the model after them.
        tensor: Name of the tensor that differs.
        inputs: The set of inputs that shows it.
        difference: How far the tensor is from the original's.
        subgraph: Number of the subgraph.
        operator: Number of the operator in its subgraph. None if the tensor belongs to no operator.
        opcode: The operator's type, such as "CONV_2D".
        path: How the operator was converted: see `Row.path`.
        reason: Why: see `Row.reason`.
        warning: What the report warns of: see `Row.warning`.
        remedy: What you can do about the warning: see `Row.remedy`.
        rule: The legalization function that lowered the operator.
        before: The operator before the pass.
        after: What the pass turned it into.
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
    remedy: str = ""
    rule: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """What became of a model's results, pass by pass: returned by `tflq.bisect`.

    Attributes:
        source: Path of the model.
        interpreter: What ran the original.
        steps: The model after each pass that changed something: `number`, `name`, what ran it (`by`), whether the
            results are `equal`, and a `note`.
        finding: The pass that first changed a result. None if the end result equals the original's.
        sets: Names of the sets of inputs.

    Example:
        ```python
        for step in tflq.bisect("model.tflite").steps:
            print(step.name, step.equal)
        ```
    """

    source: str
    interpreter: str
    steps: tuple[Checked, ...]
    finding: Finding | None = None
    sets: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The result in a versioned JSON form."""
        return {"format": "tflq.bisection", "version": JSON_VERSION, **asdict(self)}
