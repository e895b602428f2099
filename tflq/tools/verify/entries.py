"""The entries at which two models are compared: all that both have; and those that are left out, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tflq.tools.verify.file_runner import FileRunner
from tflq.tools.verify.interface import (
    align,
    allocation_differences,
    covers,
    file_differences,
    interface_differences,
    same_inputs,
)
from tflq.tools.verify.layers import AnyRunner
from tflq.tools.verify.outcome import Uncompared
from tflq.tools.verify.tflite_runner import TfliteRunner


@dataclass
class Comparable:
    """The keys of the entries to run, the differences of the interfaces, and the entries that are left out."""

    keys: list[str] = field(default_factory=list)
    interface: list[str] = field(default_factory=list)
    uncompared: list[Uncompared] = field(default_factory=list)

    def leave_out(self, keys: Iterable[str], reason: str) -> None:
        self.uncompared += [Uncompared(key, reason) for key in keys]


def comparable(a: AnyRunner, b: AnyRunner, *, interface: bool) -> Comparable:
    """The entries that both models have. interface: whether interfaces are compared, too; without it they only matter
    where inputs do not fit."""
    if isinstance(a, TfliteRunner) and isinstance(b, FileRunner):
        return _with_file(a, b)
    if isinstance(a, FileRunner) and isinstance(b, TfliteRunner):
        return _with_file(b, a)
    result = Comparable()
    if interface or not same_inputs(a.entries, b.entries, ""):
        result.interface = _differences(a, b, interface=interface)
    both = [key for key in a.entries if key in b.entries]
    single = len(both) == len(a.entries) == len(b.entries) == 2
    if single and all(_covers(runner, both[1]) for runner in (a, b)):
        both = both[:1]  # the signature only names what "" runs by position
    result.keys = [key for key in both if same_inputs(a.entries, b.entries, key)]
    result.leave_out([key for key in both if key not in result.keys], "the models take other inputs there")
    for one, other, which in ((a, b, "second model"), (b, a, "original")):
        missing = [key for key in one.entries if key not in other.entries]
        run = "" in result.keys
        result.leave_out(
            [key for key in missing if not (run and _covers(one, key))], f"the {which} has no signature of this key"
        )
    return result


def _covers(runner: AnyRunner, key: str) -> bool:
    """Whether the first subgraph by position is all that a signature runs."""
    return isinstance(runner, TfliteRunner) and covers(runner.file, "", key)


def _differences(a: AnyRunner, b: AnyRunner, *, interface: bool) -> list[str]:
    if not (isinstance(a, TfliteRunner) and isinstance(b, TfliteRunner)):
        return file_differences(a.entries, b.entries)
    texts = interface_differences(a.file, b.file)
    return texts or (allocation_differences(a.entries, b.entries) if interface else [])


def _with_file(model: TfliteRunner, file: FileRunner) -> Comparable:
    """The entries of a TFLite model that those of a file are of."""
    result = Comparable()
    keys, result.interface = align(model, file)
    if keys and not result.interface:
        result.keys = keys
        others = [other for other in model.entries if not any(covers(model.file, key, other) for key in keys)]
        names = ", ".join(f"signature '{key}'" if key else "the first subgraph" for key in keys)
        one = "one entry, which is that" if len(keys) == 1 else "the entries"
        result.leave_out(others, f"the other file has {one} of {names}")
    return result
