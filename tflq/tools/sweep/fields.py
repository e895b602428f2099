"""The fields of a sweep's files, as `tflq.base.documents` checks them: nobody vouches for a folder of results.

Declared are those that are read here or drawn by a page; others may be there, and are only shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Required, TypedDict

from tflq.base.documents import Check, exactly
from tflq.conversion.report import PATHS
from tflq.tools.sweep.task import RESULT_FORMAT, RESULT_VERSION, Status

SETTINGS_FORMAT: Final = "tflq.sweep"
SETTINGS_VERSION: Final = 1
MOST_PARTS: Final = 1 << 16
"""Of a sweep."""
_MOST: Final = float(1 << 63)
_ARTIFACTS: Final = re.compile(r"artifacts/(?!\.+$)[\w.-]+")
_POWER: Final = re.compile(r"-?\d{1,4}")

Count = Annotated[int, Check("a whole number, from 0 on", lambda number: number >= 0)]
Amount = Annotated[float, Check("a number from 0 to 2^63", lambda number: 0 <= number <= _MOST)]
Counts = Mapping[str, Count]
PathCounts = Annotated[Counts, Check(f"counts by path: {', '.join(PATHS)}", lambda counts: counts.keys() <= {*PATHS})]
Part = Annotated[list[int], Check("a part of a sweep: [1, 4] is the first of four", lambda part: is_part(*part))]
Artifacts = Annotated[str, Check("'artifacts/NAME', a folder next to the results", _ARTIFACTS.fullmatch)]
Powers = Annotated[Counts, Check("counts by power of two", lambda counts: all(map(_POWER.fullmatch, counts)))]


def is_part(*numbers: int) -> bool:
    """Whether these are i and n of a part that a sweep can have, from 1/n to n/n."""
    return len(numbers) == 2 and 1 <= numbers[0] <= numbers[1] <= MOST_PARTS


class Difference(TypedDict, total=False):
    """Difference of an output or an operator's result from the original's."""

    entry: str
    name: str
    elements: Required[Count]
    differing: Required[Count]
    largest: Required[Amount | None]
    mean: float | None
    unit: Required[str]
    problem: Required[str]
    accepted: bool
    histogram: Powers


class LayerDifference(Difference, total=False):
    operator: Required[Count]
    opcode: Required[str]
    tensor: Required[str]


class Layers(TypedDict, total=False):
    compared: Required[Count]
    differing: Required[Count]
    first: Required[LayerDifference | None]
    diverging: Required[list[LayerDifference]]


class _Verdict(TypedDict):
    verdict: str
    inputs: list[str]
    outputs: list[Difference]


class Verified(_Verdict, total=False):
    """A verification in short, of which empty lists can be left out."""

    skipped: list[str]
    interface: list[str]
    original_failures: list[str]
    other_kernels: str
    failures: list[str]


class Summarized(_Verdict):
    """A verification in short, with all that a cache has of it."""

    skipped: list[str]
    interface: list[str]
    original_failures: list[str]
    other_kernels: str
    failures: list[str]
    layers: Layers | None


class RunTime(TypedDict, total=False):
    entry: str
    before: Required[Amount | None]
    after: Required[Amount | None]
    problem: str


class Arena(TypedDict, total=False):
    bytes: Count | None
    dynamic: str | None


class Cost(TypedDict, total=False):
    arena_in: Arena | None
    arena: Arena | None
    slower: str | None
    instead: str | None


class Operators(TypedDict, total=False):
    counts: Counts
    paths: Mapping[str, PathCounts]
    before: Counts
    after: Counts
    reasons: Counts


class Source(TypedDict, total=False):
    sha256: str
    bytes: Count
    place: str
    source: str


class Converted(TypedDict, total=False):
    sha256: Required[str]
    bytes: Required[Count]


class Expected(TypedDict):
    status: str
    reason: str


class Static(TypedDict, total=False):
    kept: bool
    error: str


class Fingerprint(TypedDict, total=False):
    cpu: str
    convert: Mapping[str, Any]


class _Measures(TypedDict, total=False):
    converted: Converted
    operators: Operators
    cost: Cost
    run_time: list[RunTime]
    verification: Verified
    given: Verified
    xnnpack: Verified
    layers: Layers | None
    layers_why: str
    static: Static
    cpu: Mapping[str, Amount]
    reasons: list[Mapping[str, Any]]
    warnings: list[str]
    exceptions: list[str]
    peak_convert: Count


class Answer(_Measures, total=False):
    """The answer of a try."""

    status: Status
    why: str
    model: Source


class _Format(TypedDict):
    format: Annotated[str, exactly(RESULT_FORMAT)]
    version: Annotated[int, exactly(RESULT_VERSION)]


class Line(_Format, _Measures, total=False):
    """A line of `results.jsonl`: docs/sweeps.md."""

    id: Required[str]
    target: Required[str]
    status: Required[Status]
    expected: Required[bool]
    expectation: Required[Expected | None]
    why: Required[str]
    cause: Required[str]
    model: Required[Source]
    fingerprint: Required[Fingerprint]
    artifacts: Artifacts
    tries: list[str]
    seconds: Amount
    peak_bytes: Count
    log: str


class Started(TypedDict, total=False):
    """The options that a sweep was started with."""

    targets: list[str]
    only: list[str]
    shard: Part | None
    seconds: Amount
    bytes: Count


class Settings(TypedDict, total=False):
    """`sweep.json`."""

    format: Required[Annotated[str, exactly(SETTINGS_FORMAT)]]
    version: Required[Annotated[int, exactly(SETTINGS_VERSION)]]
    settings: Required[Started]
    fingerprint: Required[Fingerprint]
    sources: Required[list[str]]
    jobs: list[tuple[str, str]]
    incomplete: list[str]
