"""Interfaces: what a drop-in replacement keeps. Names, shapes, types and quantization of inputs and outputs;
signatures; metadata. For a TOSA file it is less, and the entry that it stands for is found first. And what it may
not keep: results that a conversion cannot or does not reproduce.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Final, Required, TypeAlias, TypedDict

from tflq.base.arguments import not_expected
from tflq.base.documents import DocumentError, checked, exactly, read_json
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.ir.module import Module, Signature
from tflq.numerics.kernel_sets import IN_FILE
from tflq.tools.verify.file_runner import FileRunner, Names
from tflq.tools.verify.model_file import Entry, Graph, ModelFile, Operator, Tensor, entry_of
from tflq.tools.verify.tflite_runner import TfliteRunner
from tflq.tools.verify.worker import Entries, Side

if TYPE_CHECKING:
    from tflq.conversion.report import Report


RUNTIME = "min_runtime_version"
"""Metadata that says which release the operators of a model need: a model of other operators needs another."""


def interface_differences(a: ModelFile, b: ModelFile) -> list[str]:
    """One sentence per difference of b's interface from a's."""
    sentences = [f"signature '{key}' is missing" for key in a.entries if key not in b.entries]
    sentences += [f"signature '{key}' is new" for key in b.entries if key not in a.entries]
    for key in a.entries:
        if key in b.entries:
            where = f"signature '{key}': " if key else ""
            sentences += [where + text for text in _entries(a, b, a.entries[key], b.entries[key])]
    return sentences + list(_metadata(a.metadata, b.metadata))


def _metadata(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> Iterator[str]:
    for name in a:
        if name == IN_FILE:
            continue
        if name not in b:
            yield f"metadata '{name}' is missing"
        elif name != RUNTIME and a[name] != b[name]:
            yield f"metadata '{name}' is {_short(b[name])} instead of {_short(a[name])}"
    yield from (f"metadata '{name}' is new" for name in b if name not in a and name not in (RUNTIME, IN_FILE))


def _entries(a: ModelFile, b: ModelFile, before: Entry, after: Entry) -> Iterator[str]:
    for kind in ("input", "output"):
        pairs = [getattr(entry, f"{kind}s") for entry in (before, after)]
        if [name for name, _ in pairs[0]] != [name for name, _ in pairs[1]]:
            yield f"{kind}s are {_listed_names(pairs[1])} instead of {_listed_names(pairs[0])}"
            continue
        for (name, i), (_, j) in zip(*pairs, strict=True):
            tensors = a.graphs[before.graph].tensor(i), b.graphs[after.graph].tensor(j)
            yield from (f"{kind} '{name}': {text}" for text in _tensors(*tensors))


def _tensors(a: Tensor, b: Tensor) -> Iterator[str]:
    if a.name != b.name:
        yield f"its tensor is '{b.name}' instead of '{a.name}'"
    for name in ("shape", "signature", "type", "scales", "zero_points", "axis", "details"):
        before, after = getattr(a, name), getattr(b, name)
        if name == "signature" and (before, after) == (a.shape, b.shape):
            continue  # nothing is open: they are the shapes again
        same = before.tobytes() == after.tobytes() if name == "scales" else before == after
        if not same:
            before, after = (x.tolist() if name == "scales" else x for x in (before, after))
            before, after = (list(x) if isinstance(x, tuple) else x for x in (before, after))
            yield f"{_WORDS[name]} {_short(after)} instead of {_short(before)}"


_WORDS = {
    "shape": "shape is",
    "signature": "shape signature is",
    "type": "type is",
    "scales": "scales are",
    "zero_points": "zero points are",
    "axis": "quantized axis is",
    "details": "quantization details are of kind",
}


def allocation_differences(a: Entries, b: Entries) -> list[str]:
    """One sentence per input or output that the interpreter allocates with another shape for b, before it runs."""
    sentences: list[str] = []
    for key in a:
        for side in ("inputs", "outputs"):
            pairs = zip(a[key][side], b.get(key, {}).get(side, ()), strict=False)
            where = f"signature '{key}': " if key else ""
            sentences += [
                f"{where}{side[:-1]} '{name}': is allocated as {after['shape']} instead of {before['shape']}"
                for (name, before), (_, after) in pairs
                if before["shape"] != after["shape"]
            ]
    return sentences


def same_inputs(a: Entries, b: Entries, key: str) -> bool:
    """Whether both models take the same arrays at an entry, so that they can be compared there. Each is first given the
    dims that it leaves open and the other states.
    """
    sides = [[d for _, d in entries[key]["inputs"]] for entries in (a, b) if key in entries]
    if len(sides) < 2 or [d["dtype"] for d in sides[0]] != [d["dtype"] for d in sides[1]]:
        return False
    shapes = [[d["shape_signature"] or d["shape"] for d in side] for side in sides]
    if shapes[0] == shapes[1]:
        return True
    if not all(map(shapes_fit, *shapes)):
        return False
    for x, y, m, n in zip(*sides, *shapes, strict=True):
        x["shape"] = y["shape"] = [d if max(pair) < 0 else max(pair) for *pair, d in zip(m, n, x["shape"], strict=True)]
    return True


def covers(file: ModelFile, key: str, other: str = "") -> bool:
    """Whether an entry runs all that another of the file runs: the same subgraph, inputs and outputs."""
    one, two = file.entries[key], file.entries[other]
    sides = ([{t for _, t in side} for side in (entry.inputs, entry.outputs)] for entry in (one, two))
    (inputs, outputs), (others, wanted) = sides
    return one.graph == two.graph and inputs == others and wanted <= outputs


def shapes_fit(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes may be one; -1 is an open dim."""
    return len(a) == len(b) and all(m == n or min(m, n) < 0 for m, n in zip(a, b, strict=True))


def _listed_names(side: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"'{name}'" for name, _ in side) or "none"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def signature_of(module: Module, key: str) -> Signature | None:
    """The signature of an entry of a module that we read; None for "", which is its first function by position."""
    return next((signature for signature in module.signatures or () if key and signature.key == key), None)


def function_number(module: Module, key: str) -> int:
    """Number of the function of a module that an entry runs."""
    signature = signature_of(module, key)
    return 0 if signature is None else signature.function


# The entry of a TFLite model that a TOSA file stands for, and what the file keeps of its interface.
#
# A TOSA file has one entry and no signatures; its inputs and outputs have the names of the tensors, their storage
# types and known shapes, and no quantization parameters. int64 tensors are int32 there.


def align(model: TfliteRunner, file: FileRunner) -> tuple[list[str], list[str]]:
    """Gives each entry of a file the key, names and order of the model's entry with the same tensors. That entry gets
    the shapes of the file. Returns the keys, and a sentence per difference of the interfaces.
    """
    keys: list[str] = []
    sentences: list[str] = []
    for entry in list(file.entries):
        key, texts = _align(model, file, entry, [key for key in model.entries if key not in keys])
        keys += [] if key is None else [key]
        sentences += texts
    return keys, sentences


def _align(
    model: TfliteRunner, file: FileRunner, entry: str, candidates: Sequence[str]
) -> tuple[str | None, list[str]]:
    """The key of the model's entry that an entry of the file is: of those with the same tensors one with its key, or
    the first."""
    file_names = {side: [name for name, _ in pairs] for side, pairs in file.entries[entry].items()}
    for key in sorted(candidates, key=lambda key: key != entry):
        names = _tensor_names(model.file, key)
        if any(len(names[side]) != len(file_names[side]) for side in file_names):
            continue
        names = {side: _named(names[side], file_names[side]) for side in file_names}
        if all(sorted(t for _, t in names[s]) == sorted(file_names[s]) for s in file_names):
            file.align(entry, key, names["inputs"], names["outputs"])
            pair = model.entries[key], file.entries[key]
            return key, [text for side in file_names for text in _differences(side, *(each[side] for each in pair))]
    return None, [
        f"no entry of the TFLite model has the inputs {file_names['inputs']} and the outputs {file_names['outputs']}"
    ]


def _named(pairs: Names, file_names: list[str]) -> Names:
    """The names that tensors have in the file. A name that is listed twice has a number added, since names are unique
    there. Tensors without a name get the names that are left, in order."""
    free = list(file_names)
    chosen: dict[int, str] = {}
    for fits in (str.__eq__, _is_numbered):
        for i, (_, tensor) in enumerate(pairs):
            name = next((name for name in free if tensor and fits(name, tensor)), None) if i not in chosen else None
            if name is not None:
                chosen[i] = name
                free.remove(name)
    rest = iter(free)
    return [(name, chosen[i] if i in chosen else tensor or next(rest)) for i, (name, tensor) in enumerate(pairs)]


def _is_numbered(name: str, tensor: str) -> bool:
    return name.removeprefix(f"{tensor}_").isdigit()


def _tensor_names(file: ModelFile, key: str) -> dict[str, Names]:
    """For each side of an entry, (name there, name of the tensor)."""
    entry, graph = entry_of(file, key)
    sides = {"inputs": entry.inputs, "outputs": entry.outputs}
    return {side: [(name, graph.tensor(index).name) for name, index in pairs] for side, pairs in sides.items()}


def _differences(side: str, model: Side, tosa: Side) -> Iterator[str]:
    for (name, before), (_, after) in zip(model, tosa, strict=True):
        shape, signature = before["shape"], before["shape_signature"] or before["shape"]
        dims = after["shape"]
        if not shapes_fit(dims, signature) and dims != shape:
            yield f"{side[:-1]} '{name}': shape is {dims} instead of {signature}"
            continue
        before["shape"] = dims
        if after["dtype"] != before["dtype"] and (before["dtype"], after["dtype"]) != ("int64", "int32"):
            yield f"{side[:-1]} '{name}': dtype is {after['dtype']} instead of {before['dtype']}"


def file_differences(a: Entries, b: Entries) -> list[str]:
    """One sentence per difference of two files' interfaces, where both have an entry."""
    sentences: list[str] = []
    for key, side in product([key for key in a if key in b], ("inputs", "outputs")):
        before, after = a[key][side], b[key][side]
        if [name for name, _ in before] != [name for name, _ in after]:
            sentences.append(f"{side} are {_listed_names(after)} instead of {_listed_names(before)}")
            continue
        for (name, old), (_, new) in zip(before, after, strict=True):
            fields = [field for field in ("shape_signature", "dtype") if old[field] != new[field]]
            sentences += [f"{side[:-1]} '{name}': {f.split('_')[0]} is {new[f]} instead of {old[f]}" for f in fields]
    return sentences


# Operators of an original whose results a conversion cannot or does not reproduce, and why. What follows such an
# operator says nothing of the conversion unless both models go on with the same values: the result of the original is
# fed to the other.


ReportLike: TypeAlias = "Report | Mapping[str, Any] | FilePath"
"""The report of a conversion, its JSON form, or a file of that."""

_NOT_REPRODUCED: Final = frozenset({"broken", "inexact", "unsettled"})
"""The exceptions in docs/exceptions.md whose results are not the interpreter's."""

_SUM: Final = "the reference kernel of SUM reads {type} as uint8; the optimized kernel computes in float32"

_BLOCKS: Final = "the reference kernel ignores the scales per block of '{}'; the optimized one drops a fused activation"
_BLOCKWISE: Final = 2
"""The kind of quantization details that says so: BlockwiseQuantization."""

_SEVERAL: Final = "TFLite's kernel reads one scale, but '{}' has several"

_HYBRID: Final = frozenset(
    "BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN".split()
)
"""Operators with kernels for float activations and quantized weights, their second operand."""


@dataclass(frozen=True)
class Expectation:
    """Why an operator's result may differ. within: by how many counts at most; None: by any number; 0: it may not.
    apart: it runs on other kernels, because its reference kernel is wrong."""

    reason: str
    within: float | None = None
    apart: bool = False


def broken(graph: Graph) -> dict[int, Expectation]:
    """The operators of a graph whose reference kernels are wrong, by index."""
    return {i: why for i in range(len(graph.operators)) for why in _wrong(graph, i)}


def _wrong(graph: Graph, index: int) -> Iterator[Expectation]:
    op = graph.operators[index]
    several = next((name for name in _several_scales(graph, op)), None)
    if several is not None:
        yield Expectation(_SEVERAL.format(several))
        return
    operand = graph.tensor(op.inputs[0]) if op.inputs and op.inputs[0] >= 0 else None
    if op.opcode == "SUM" and operand is not None and operand.type in ("int8", "int16") and operand.scales.size:
        yield Expectation(_SUM.format(type=operand.type), within=1, apart=True)
    if op.opcode == "FULLY_CONNECTED" and operand is not None and operand.type == "float32":
        weights = graph.tensor(op.inputs[1])
        if weights.details == _BLOCKWISE:
            yield Expectation(_BLOCKS.format(weights.name), within=0, apart=True)


def rounding(graph: Graph) -> list[int]:
    """The operators of a graph whose kernels round float activations to 8 bits as they run, by index: hybrid ones, on
    quantized weights."""
    return [i for i, op in enumerate(graph.operators) if _rounds(graph, op)]


def _rounds(graph: Graph, op: Operator) -> bool:
    if op.opcode not in _HYBRID or min(op.inputs[:2], default=-1) < 0:
        return False
    x, weights = (graph.tensor(t) for t in op.inputs[:2])
    quantized = weights.scales.size > 0 or weights.details == _BLOCKWISE
    return quantized and x.type == "float32" and weights.type.endswith(("int8", "int4", "int2"))


def _several_scales(graph: Graph, op: Operator) -> Iterator[str]:
    """The tensors with several scales of which a kernel reads the single one, and computes with 0."""
    tensors = {"BATCH_MATMUL": op.outputs, "QUANTIZE": op.inputs}.get(op.opcode, (*op.inputs, *op.outputs))
    several = [tensor.name for tensor in (graph.tensor(t) for t in tensors if t >= 0) if tensor.scales.size > 1]
    if several and _asks_for_one_scale(op.opcode):
        yield from several


def _asks_for_one_scale(opcode: str) -> bool:
    from tflq.dialects.parameters import Misreads
    from tflq.dialects.tfl import op_name
    from tflq.ir.ops import op_class

    declared = op_class(op_name(opcode))
    traits = () if declared is None else declared.traits
    return any(isinstance(trait, Misreads) and "scales" in trait.kinds for trait in traits)


class _Row(TypedDict, total=False):
    subgraph: Required[int]
    operator: Required[int]
    exception: str
    warning: str


class _Report(TypedDict):
    format: Annotated[str, exactly("tflq.report")]
    rows: list[_Row]


class _Printed(TypedDict):
    """Output of `convert --json`."""

    report: _Report


_READ: Final = _Report | _Printed


def reported(report: ReportLike) -> dict[tuple[int, int], Expectation]:
    """The operators of which a conversion's report warns that they are not reproduced, by subgraph and number.
    FileError, OptionError."""
    what, remedy = "the report of a conversion", "give what `convert --report` writes"
    if isinstance(report, (str, os.PathLike)):
        document = read_json(report, _READ, what, remedy=remedy)
    else:
        if not isinstance(report, Mapping) and not hasattr(report, "to_json"):
            raise not_expected("report", report, f"{what}, its JSON form, or a file of that")
        try:
            document = checked(report if isinstance(report, Mapping) else report.to_json(), _READ)
        except DocumentError as error:
            raise OptionError(Reason(f"this is not {what}: {error}", remedy=remedy)) from error
    rows = document.get("report", document)["rows"]
    warned = [row for row in rows if row.get("exception") in _NOT_REPRODUCED and row.get("warning")]
    return {(row["subgraph"], row["operator"]): Expectation(row["warning"]) for row in warned}
