"""Kernel sets by name, and which of them a converted file is exact for.

A rule asks a set for the factors that the kernels of an interpreter have, and never for its name.

    reference-1.0         `tflq.numerics.reference.Reference10`
    reference-2.3         `KernelSet`: ai-edge-litert 2.0 to 2.3 on x86-64
    reference-2.3-arm64   `ReferenceArm64`
    reference-2.4-dev     `Reference24`
    xnnpack-...           `tflq.numerics.xnnpack`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Final, NamedTuple, TypeAlias, TypedDict

from tflq.base.documents import Check, DocumentError, parse_json
from tflq.numerics.reference import KernelSet, Reference10, Reference24, ReferenceArm64

_REFERENCES: Final = {s.name: s for s in (Reference10(), KernelSet(), ReferenceArm64(), Reference24())}
REFERENCE: Final = _REFERENCES["reference-2.3"]
"""The set that conversions are exact for where no other is chosen."""
DEFAULT: Final = REFERENCE.name
IN_FILE: Final = "tflq.kernel_set"
"""The metadata of a converted file that has its `Exactness`."""
NAMES: Final = (*_REFERENCES, "xnnpack-2.3", "xnnpack-2.3-arm64", "xnnpack-2.3-arm64-a53", "xnnpack-2.4-dev")
"""The names of all sets. What is known from a nightly alone ends in -dev."""
NEWEST: Final[Mapping[str, str]] = {"reference": "reference-2.3", "xnnpack": "xnnpack-2.3"}
"""The newest released set of a family."""


_Name: TypeAlias = Annotated[
    str,
    Check(
        "a name of letters and digits", lambda name: len(name) < 64 and name.replace("-", "").replace(".", "").isalnum()
    ),
]


class _Document(TypedDict):
    """The metadata of a file. A later release may have written it, with names that are not known here."""

    name: _Name
    differing: Mapping[str, Annotated[int, Check("a number of operators", lambda count: count > 0)]]


class Exactness(NamedTuple):
    """The kernel sets that a converted file reproduces.

    name: the set that it was converted for. differing: in how many of its operators the kernels of each set, also of
    that one, compute otherwise or in a way that is not known; sets with none are left out.
    """

    name: str
    differing: Mapping[str, int]

    @classmethod
    def of(cls, name: str, operators: Iterable[Sequence[str]]) -> Exactness:
        """The exactness of operators, by the names of the sets under which each differs."""
        counts = Counter(chain.from_iterable(operators))
        return cls(name, {each: counts[each] for each in NAMES if counts[each]})

    @classmethod
    def read(cls, text: bytes | None) -> Exactness | None:
        """The exactness in the metadata of a file; None if there is none, or text of another form."""
        try:
            document = None if text is None else parse_json(text, _Document)
        except DocumentError:
            return None
        return None if document is None else cls(document["name"], document["differing"])

    def behind(self, source: Exactness) -> Exactness:
        """The exactness of a file whose source was converted before: operators of both count. The name is the source's,
        if the operators that were lowered last are the same under all sets."""
        counts = Counter(source.differing) + Counter(self.differing)
        ordered = {name: counts[name] for name in dict.fromkeys((*NAMES, *counts)) if counts[name]}
        return Exactness(self.name if self.differing else source.name, ordered)

    @property
    def exact_for(self) -> tuple[str, ...]:
        """The sets for which no operator differs."""
        return tuple(name for name in NAMES if name not in self.differing)

    @property
    def document(self) -> dict[str, object]:
        """Its form in JSON."""
        return {"name": self.name, "exact_for": list(self.exact_for), "differing": dict(self.differing)}

    @property
    def text(self) -> str:
        """The document as JSON."""
        import json

        return json.dumps(self.document)

    def __str__(self) -> str:
        """The sets for which no operator differs, and how many do under its own and the newest ones, in a line."""
        if not self.differing:
            return "exact for all kernel sets"
        parts = [f"exact for {', '.join(self.exact_for) or 'no kernel set'}"]
        counts = {name: self.differing.get(name, 0) for name in (self.name, *NEWEST.values())}
        parts += [f"{n} operator{'s differ' if n > 1 else ' differs'} under {name}" for name, n in counts.items() if n]
        return "; ".join(parts)


def kernel_set(name: str) -> KernelSet:
    """The set of a name, or the newest released one of a family. KeyError if there is none."""
    name = NEWEST.get(name, name)
    if name in _REFERENCES:
        return _REFERENCES[name]
    from tflq.numerics.xnnpack import KERNEL_SETS

    return KERNEL_SETS[name]
