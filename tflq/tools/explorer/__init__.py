"""Graphs for Model Explorer: a model in three stages, as it is, in the integer form, and converted.

`model-explorer x.tflite --extensions=tflq.tools.explorer` opens them, and `tflq inspect --format model-explorer` prints
them as a file that Model Explorer opens. Only `tflq.tools.explorer.main` needs Model Explorer.

Each stage is a collection of graphs, one per function, as plain data. The fields are those of Model Explorer's
`graph_builder` (0.1): nodes with namespaces, attributes, incoming edges, and metadata per input and output. Its own
tags are used: `tensor_shape` is shown on edges, `quantization` is read as a formula, and constants are `pseudo_const`
nodes, which it hides until they are asked for. In every stage the nodes that come from one operator of the source are
in one layer, named after it. A node has the colour of the path of its operator, and shows the reason, note and warning
of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tflq.base.errors import Reason, UnsupportedError
from tflq.base.files import FilePath
from tflq.conversion.convert import convert, integer_form
from tflq.conversion.report import Row
from tflq.dialects.declare import Operator, Slot
from tflq.dialects.effects import callees
from tflq.dialects.forms import is_tosa
from tflq.formats.backend import of_target
from tflq.formats.options import Options
from tflq.formats.sources import Source, read, reusable_source
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.text.print_types import attribute_text, constant_text, quantization, shape_text
from tflq.ir.types import ElementType
from tflq.targets.load import load_target

Json = dict[str, Any]
Describe = Callable[[Op], tuple[Mapping[str, str], str]]
"""Further facts about an op: attributes to show, and the colour of its border ("" for the usual one)."""

NOTHING: Final[Mapping[str, ElementType]] = MappingProxyType({})

_INPUTS, _OUTPUTS, _CONSTANT = "GraphInputs", "GraphOutputs", "pseudo_const"
_CALLS = ("subgraph", "_graph", "called_computations")


def graphs(
    module: Module, stage: str, describe: Describe, quantized: Mapping[str, ElementType] = NOTHING
) -> list[Json]:
    """The graphs of the functions of a module. `stage` is a part of their ids, so that these differ between modules.

    quantized: the quantized types of the source's tensors by name; shown for tensors that hold only their integers.
    """
    ids = _graph_ids(module, stage)
    return [
        _FunctionGraph(function, ids, module.signatures or (), describe, quantized).graph(ids[index])
        for index, function in enumerate(module.functions)
    ]


def _graph_ids(module: Module, stage: str) -> list[str]:
    names = [function.name or f"subgraph {index}" for index, function in enumerate(module.functions)]
    return [
        f"{name} ({stage})" if names.count(name) == 1 else f"{name}, subgraph {index} ({stage})"
        for index, name in enumerate(names)
    ]


class _FunctionGraph:
    """The nodes of one function: its inputs, its ops in order, each after its constants, and its outputs."""

    def __init__(
        self,
        function: Function,
        ids: list[str],
        signatures: Iterable[Signature],
        describe: Describe,
        quantized: Mapping[str, ElementType],
    ) -> None:
        self._function = function
        self._ids = ids
        self._describe = describe
        self._quantized = quantized
        self._names = {
            value: name or "" for s in signatures for pairs in (s.inputs, s.outputs) for name, value in pairs or ()
        }
        self._numbers = {value: index for index, value in enumerate(function.tensors)}
        self._sources: dict[Value, tuple[str, int]] = {}
        self._nodes: list[Json] = []

    def graph(self, key: str) -> Json:
        function = self._function
        for index, value in enumerate(function.inputs):
            self._sources[value] = _INPUTS, index
        if function.inputs:
            outputs = [self._tensor(i, v) for i, v in enumerate(function.inputs)]
            self._nodes.append(_node(_INPUTS, _INPUTS, outputs=outputs))
        for index, op in enumerate(function.ops):
            self._add(op, str(index))
        edges = [edge for i, v in enumerate(function.outputs) for edge in self._edge(i, v, "")]
        inputs = [self._tensor(i, v) for i, v in enumerate(function.outputs)]
        if function.outputs:
            self._nodes.append(_node(_OUTPUTS, _OUTPUTS, edges=edges, inputs=inputs))
        return {"id": key, "nodes": self._nodes}

    def _add(self, op: Op, key: str) -> None:
        known, colour = self._describe(op)
        namespace = _namespace(op)
        slots = (op.operand_slots, op.result_slots) if isinstance(op, Operator) else ((), ())
        operands, results = _tags(op.operands, slots[0]), _tags(op.results, slots[1])
        edges = [edge for i, v in enumerate(op.operands) if v is not None for edge in self._edge(i, v, namespace)]
        called = [self._ids[i] for i in callees(op) if i < len(self._ids)]
        attributes = {
            name: attribute_text(value)
            for name, value in op.attributes.items()
            if value is not None and not any(part in name for part in _CALLS)
        }
        node = _node(
            key,
            op.short_name if op.name.startswith("tfl.") else op.name,
            namespace,
            {**attributes, **known},
            edges,
            [self._tensor(i, v, operands[i]) for i, v in enumerate(op.operands) if v is not None],
            [self._tensor(i, v, results[i]) for i, v in enumerate(op.results)],
        )
        if called:
            node["subgraphIds"] = called
        if colour:
            node["style"] = {"borderColor": colour, "hoveredBorderColor": colour}
        self._nodes.append(node)
        self._sources |= {value: (key, i) for i, value in enumerate(op.results)}

    def _edge(self, index: int, value: Value, namespace: str) -> list[Json]:
        """The edge into an input, if something produces it. The node of a constant is added before, once."""
        if value not in self._sources:
            if value.buffer is None and not value.is_constant:
                return []
            key = f"constant {len(self._nodes)}"
            shown, outputs = {"__value": constant_text(value)}, [self._tensor(0, value)]
            self._nodes.append(_node(key, _CONSTANT, namespace, shown, outputs=outputs))
            self._sources[value] = key, 0
        source, output = self._sources[value]
        return [{"sourceNodeId": source, "sourceNodeOutputId": str(output), "targetNodeInputId": str(index)}]

    def _tensor(self, index: int, value: Value, tag: str = "") -> Json:
        """Metadata of a node's input or output."""
        shown = {
            "__tensor_tag": tag,
            "tensor_index": str(self._numbers[value]) if value in self._numbers else "",
            "tensor_name": value.name,
            "tensor_shape": shape_text(value.type),
            "signature_name": self._names.get(value, ""),
            **quantization(value.type.element),
        }
        if not value.type.quantized and value.name in self._quantized:
            source = quantization(self._quantized[value.name])
            shown |= {f"source: {name}": text for name, text in source.items()}
        return {"id": str(index), "attrs": _pairs(shown)}


def _node(
    key: str,
    label: str,
    namespace: str = "",
    attributes: Mapping[str, str] | None = None,
    edges: list[Json] | None = None,
    inputs: list[Json] | None = None,
    outputs: list[Json] | None = None,
) -> Json:
    return {
        "id": key,
        "label": label,
        "namespace": namespace,
        "subgraphIds": [],
        "attrs": _pairs(attributes or {}),
        "incomingEdges": edges or [],
        "inputsMetadata": inputs or [],
        "outputsMetadata": outputs or [],
    }


def _pairs(attributes: Mapping[str, str]) -> list[Json]:
    return [{"key": name, "value": text} for name, text in attributes.items() if text]


def _namespace(op: Op) -> str:
    """The layers that a node is in: the parts of the source's tensor name, then the operator of the source."""
    if op.location is None:
        return ""
    first = op.location.tensor.partition(";")[0].strip("/")
    place = f"{op.location.opcode} {op.location.operator}"
    return "/".join(part for part in (*first.split("/")[:-1], place) if part)


def _tags(values: list[Any], slots: tuple[Slot, ...]) -> list[str]:
    """The name of the slot of each operand or result. A variadic last slot takes all that are left."""
    names = []
    for index in range(len(values)):
        slot = slots[min(index, len(slots) - 1)] if slots else None
        fits = slot is not None and (index < len(slots) or slot.variadic)
        names.append(slot.name if slot is not None and fits else "")
    return names


COLOURS: Final[Mapping[str, str]] = {"integer": "#2e9e5b", "float": "#e08a00", "kept": "", "refused": "#e03131"}
"""The colour of a node's border, by what becomes of its operator; visible on light and dark backgrounds."""

_Known = Mapping[tuple[int, int], tuple[Mapping[str, str], str]]
"""Attributes to show of an operator, and its colour, by subgraph and operator."""


class Explored(NamedTuple):
    """The collections of graphs, {"label", "subgraphs"} each. As a JSON list they are a file that Model Explorer opens.
    refused: why the model cannot be converted, if it cannot."""

    stages: list[Json]
    refused: UnsupportedError | None = None


def explore(source: Source, target: FilePath | None = None) -> Explored:
    """The collections of a model (TFLite or TOSA) and of its conversion for a target, as `tflq.convert` takes it.

    For a model that cannot be converted there is only the first stage, which says why at each operator that is refused.
    InvalidModelError: the model is not valid.
    """
    source = reusable_source(source)
    try:
        conversion = convert(source, format=of_target(target).name, target=target)
    except UnsupportedError as error:
        return Explored([_refused(source, error)], error)
    describe = _describer(_of_report(conversion.report.rows))
    builtin_target = of_target(target).builtins
    options = Options(kernels=load_target(target if builtin_target else None))
    module = read(source)
    types = {v.name: v.type.element for f in module.functions for v in f.values() if v.name and v.type.quantized}
    stages = [("before", graphs(module, "before", describe))]
    if builtin_target or not is_tosa(module):  # a TOSA file stays one
        form = integer_form(module, options)
        stages.append(("integer form", graphs(form, "integer form", describe, types)))
    stages.append(("after", graphs(conversion.module, "after", describe, types)))
    return Explored([{"label": label, "subgraphs": collection} for label, collection in stages])


def _refused(source: Source, error: UnsupportedError) -> Json:
    """The source, with the reasons why it is not converted."""
    before = graphs(read(source), "before", _describer(_of_reasons(error.reasons)))
    for graph in before:
        graph["groupNodeAttributes"] = {"": {"not converted": str(error)}}
    return {"label": "before", "subgraphs": before}


def _describer(known: _Known) -> Describe:
    def describe(op: Op) -> tuple[Mapping[str, str], str]:
        place = op.location
        return ({}, "") if place is None else known.get((place.function, place.operator), ({}, ""))

    return describe


def _of_report(rows: tuple[Row, ...]) -> _Known:
    return {
        (row.subgraph, row.operator): (
            {
                "tflq: operator": f"{row.opcode} {row.operator}",
                "tflq: path": row.path,
                "tflq: reason": row.reason,
                "tflq: note": row.note,
                "tflq: warning": row.advice,
                "tflq: operators emitted": str(row.emitted),
            },
            COLOURS[row.path],
        )
        for row in rows
    }


def _of_reasons(reasons: tuple[Reason, ...]) -> _Known:
    return {
        (reason.subgraph, reason.operator): (
            {"tflq: path": "refused", "tflq: reason": reason.what, "tflq: remedy": reason.remedy},
            COLOURS["refused"],
        )
        for reason in reasons
        if reason.subgraph is not None and reason.operator is not None
    }
