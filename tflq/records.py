"""What passes find out on their way that later ones and the report need; each is noted in `Module.record`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tflq.ir.core import Function, Module, Op
from tflq.light import dataclass, field

__all__ = ["Decision", "Decisions", "LargeTables", "SourceFunctions", "SourceNames"]


@dataclass(slots=True)
class Decision:
    """What became of one operator of the source model: a row of the report."""

    op: Op
    path: str  # "kept", "integer" or "float"
    reason: str = ""
    warning: str = ""
    exception: str = ""  # which of `tflq.legalize.exceptions` the warning is of
    remedy: str = ""  # what to do about the warning
    made: list[Op] = field(default_factory=list)
    rule: Callable[..., object] | None = None  # that answered, where one did
    not_kernel: str = ""  # why none of the kernels that the target lists for it was taken


@dataclass(frozen=True, slots=True)
class Decisions:
    """What became of each operator, in the order of the source."""

    rows: Sequence[Decision] = ()

    @staticmethod
    def of(module: Module) -> Sequence[Decision]:
        """Those noted on a module; none if nothing was decided."""
        found = module.record.find(Decisions)
        return () if found is None else found.rows


@dataclass(frozen=True, slots=True)
class LargeTables:
    """What each table of two operands saves in a run, in nanoseconds."""

    gains: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The names of the source's tensors, which no other tensor gets."""

    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceFunctions:
    """The functions that legalization read: the part of the source that is converted, at the shapes that it is
    converted for. What it keeps of them it copies, so that no later pass changes their ops."""

    functions: Sequence[Function] = ()
