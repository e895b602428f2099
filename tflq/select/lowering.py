"""Instruction selection: how one op of the integer form becomes TFLite builtins on plain integer tensors.

    @lowering(Add)
    def add(op: Add, k: Kernels) -> Value | Sequence[Value]: ...

`k.value(operand)` is the operand in the form being built; `k.<builtin>(...)` emits kernels. Which builtins are right
on plain integers, and on which types, is `rules/integer.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from tflq.analysis.ranges import Ranges
from tflq.dialects.tfl.runtime import state_version
from tflq.ir.core import Function, Op, Value
from tflq.ir.types import TensorType
from tflq.registering import Registry
from tflq.select.kernels import KernelBuilder
from tflq.select.naming import role_of
from tflq.select.twins import Twin

if TYPE_CHECKING:
    from tflq.proof_cache import Argument, Arrays, ProofCache

__all__ = ["Kernels", "Lowering", "Mac", "lowering"]

Mac = Literal["integer", "float32"]

T = TypeVar("T", bound=Op)
R = TypeVar("R")


class Kernels(KernelBuilder):
    """A `KernelBuilder` that knows the function being selected: its ops in the integer form (`source`), what its values
    have become, who uses them."""

    def __init__(self, function: Function, mac: Mac, proofs: ProofCache | None = None) -> None:
        super().__init__()
        self.mac = mac
        self._proofs = proofs
        self.source: Final[Sequence[Op]] = function.ops
        self.fused: set[Op] = set()
        self.twins: Final[dict[Value, Twin]] = {}
        self._start = 0
        self._users = function.users()
        self._outputs = frozenset(function.outputs)
        self._selected: dict[Value, Value] = {}
        self.ranges: Final = Ranges()  # of integer tensors of `source`
        self._once: dict[Callable[[Kernels], Any], Any] = {}

    def value(self, operand: Value) -> Value:
        """What an operand has become; arguments and constants are themselves."""
        return self._selected.get(operand, operand)

    def once(self, compute: Callable[[Kernels], R]) -> R:
        """`compute(self)`, computed when it is first asked for: what is found for all ops of `source` at once."""
        if compute not in self._once:
            self._once[compute] = compute(self)
        result: R = self._once[compute]
        return result

    def remembered(self, function: Callable[..., Arrays], *arguments: Argument) -> Arrays:
        """`function(*arguments)`, a pure function of `tflq.numerics`; from the cache of proofs, if there is one."""
        return function(*arguments) if self._proofs is None else self._proofs(function, *arguments)

    def begin(self) -> None:
        """Starts the lowering of one op: what is emitted from here on is its own."""
        self._start = len(self.ops)

    def end(self, op: Op, results: Sequence[Value]) -> None:
        """Ends it: its results, and what is on the way to them, have roles that say so, and its kernels versions."""
        role = role_of(op)
        for value in results:
            value.role = value.role or role
        for made in self.ops[self._start :]:
            for value in made.results:
                if not value.role:
                    value.role = f"{role}/{made.name.removeprefix('tfl.')}"
        for old, new in zip(op.results, results, strict=True):
            self.claim(old, new)
        for made in self.ops[self._start :]:
            state_version(made)

    def claim(self, old: Value, new: Value) -> None:
        """Records what a value has become. A value with a name, or that is returned, is another tensor."""
        if (old.name or old in self._outputs) and new is not old:
            made = any(new is v for op in self.ops[self._start :] for v in op.results)
            if new.name or not made:
                new = self.copy(new)
            new.name = old.name
            if old.type.shape is not None:
                new.type = TensorType(old.type.shape, new.type.element)
        self._selected[old] = new

    def only_user(self, value: Value, kind: type[T]) -> T | None:
        """The op of a class that is the one reader of an unnamed value: a lowering may fuse it with its producer."""
        users = self._users.get(value, [])
        if len(users) != 1 or not isinstance(users[0], kind) or value.name or value in self._outputs:
            return None
        return users[0]

    def readers(self, value: Value) -> list[Op]:
        """The ops of the integer form that read a value."""
        return self._users.get(value, [])

    def fuse(self, op: Op, result: Value) -> Value:
        """Says that `result` is what `op`, a reader, would have computed, so that it is not selected again."""
        self.fused.add(op)
        result.role = role_of(op)
        self.claim(op.result, result)
        return result


Lowering: TypeAlias = Callable[[Any, Kernels], Value | Sequence[Value]]
lowering: Final[Registry[Lowering]] = Registry("tflq.select")
"""The lowering of each op of the integer form."""
