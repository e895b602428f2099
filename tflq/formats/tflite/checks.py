"""The check of a module that was just read: `InvalidModelError` says what is wrong and where.

The structure of the bytes and every index were checked before there was a module (`structure.py`, `reader.py`). Here
follow the model, its tensors, its graph, and its operators, by the operands, attributes and traits that their classes
declare. Harmless defects become warnings.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tflq.base.errors import InvalidModelError
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import nesting_problem
from tflq.dialects.forms import compiled
from tflq.dialects.parameters import NARROW
from tflq.dialects.tfl import builtin_of
from tflq.dialects.tfl.state import Custom, If, While
from tflq.dialects.traits import Calls, Undescribed, check_attribute
from tflq.formats.flatbuffer.layout import PLACEHOLDER, enum, options_of, table
from tflq.formats.tflite.tensors import quantized_element
from tflq.ir.types import SCALARS, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, UniformQuantizedType
from tflq.ir.verifier import Notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tflq.ir.module import Function, Module
    from tflq.ir.ops import Op, Value


# The graph. An interpreter runs operators in file order. A value is known if it is an input of its function, a
# constant, a variable (its memory outlives a run) or a result of an earlier operator. Source:
# `VerifySubGraphConsistency` in tflite/core/tools/verifier.cc, `Subgraph::PrepareOpsStartingAt`.


def verify_operator_codes(module: Module, notes: Notes) -> None:
    """Both code fields agree, custom operators have a name, versions start at 1."""
    values = enum("BuiltinOperator").values
    for index, row in enumerate(module.operator_codes):
        where = f"Model.operator_codes[{index}]"
        old, new = int(row["deprecated_builtin_code"]), values[row["builtin_code"]]
        if old and new and old not in (min(new, PLACEHOLDER), new):
            notes.fail(where, f"deprecated_builtin_code {old} and builtin_code {new} name different operators")
        if old < 0 or max(old, new) == PLACEHOLDER:
            notes.fail(where, f"deprecated_builtin_code {old} names no operator, and builtin_code does not either")
        if max(old, new) == values["CUSTOM"] and not row["custom_code"]:
            notes.fail(where, "custom operator without a name")
        if row["version"] < 1:
            notes.fail(where, f"operator version {row['version']} is below 1")


def verify_flow(function: Function, index: int, notes: Notes) -> None:
    """Values are written once, before they are read."""
    where = f"subgraph {index}"
    inputs = set(function.inputs)
    known = inputs.copy()
    for op in function.ops:
        for slot, value in enumerate(op.operands):
            if value is None or value in known or _has_initial_content(value):
                continue
            if value.producer is not None:
                notes.fail_op(op, f"operand {slot}, '{value.name}', is read before it is written")
            if (value.info.get("quantization") or {}).get("details") is None:
                notes.fail_op(op, f"operand {slot}, '{value.name}', is never written")
            what = f"operand {slot}, '{value.name}', has quantization details and no data"
            notes.warn_op(op, what, remedy="store its data as a constant")
        for slot, value in enumerate(op.results):
            if value in known:
                kind = "an input of the subgraph" if value in inputs else "written twice"
                notes.fail_op(op, f"result {slot}, '{value.name}', is {kind}")
            if value.buffer is not None and value.buffer.data.size:
                notes.fail_op(op, f"result {slot}, '{value.name}', is a constant")
            if value.info.get("is_variable"):
                notes.fail_op(op, f"result {slot}, '{value.name}', is a variable")
            known.add(value)
    for slot, value in enumerate(function.outputs):
        if value not in known and not _has_initial_content(value):
            notes.fail(where, f"output {slot}, '{value.name}', is never written")


def _has_initial_content(value: Value) -> bool:
    """Whether a value has content before any operator runs."""
    return value.is_constant or "is_variable" in value.info or "external_buffer" in value.info


def _called_functions(op: Op) -> Iterable[tuple[str, int]]:
    """The subgraphs an op calls: attribute name and index."""
    calls = trait_of(op, Calls)
    return () if calls is None else calls.called(op)


def verify_signatures(module: Module, notes: Notes) -> None:
    """Each signature has its own name, and names inputs and outputs of its subgraph."""
    keys: set[str | None] = set()
    for signature in module.signatures or ():
        where = f"signature '{signature.key}'"
        if signature.key in keys:
            notes.fail(where, "there are two of this name")
        keys.add(signature.key)
        function = module.functions[signature.function]
        for kind, pairs, values in (
            ("input", signature.inputs, function.inputs),
            ("output", signature.outputs, function.outputs),
        ):
            known = set(values)
            for name, value in pairs or ():
                if value not in known:
                    what = f"{kind} '{name}' is not an {kind} of subgraph {signature.function}"
                    notes.warn(where, what, remedy="name one, or leave it out")


def verify_calls(module: Module, notes: Notes) -> None:
    """Subgraph indices are in range, no subgraph reaches itself, and what one runs can be followed."""
    calls: list[list[int]] = []
    for function in module.functions:
        called: list[int] = []
        for op in function.ops:
            for attribute, index in _called_functions(op):
                if not 0 <= index < len(module.functions):
                    notes.fail_op(op, f"{attribute} {index} is not one of the {len(module.functions)} subgraphs")
                called.append(index)
        calls.append(called)
    if any(calls) and (problem := nesting_problem(calls, [str(i) for i in range(len(calls))])) is not None:
        notes.fail(f"subgraph {problem[0]}", problem[1])


def verify_call_arity(module: Module, op: Op, notes: Notes) -> None:
    """IF and WHILE pass as many values as their subgraphs take and return. Source: kernels/if.cc, kernels/while.cc."""
    if not isinstance(op, (If, While)):
        return
    passed = len(op.operands) - isinstance(op, If)
    for attribute, index in _called_functions(op):
        function: Function = module.functions[index]
        returned = 1 if attribute == "cond_subgraph_index" else len(op.results)
        if len(function.inputs) != passed or len(function.outputs) != returned:
            arity = f"{len(function.inputs)} inputs and {len(function.outputs)} outputs"
            notes.fail_op(op, f"{attribute} {index} has {arity}, where {passed} and {returned} are expected")


# The quantization parameters of each tensor. Those without a clear meaning are refused; those with one that an
# interpreter refuses or ignores are noted. Scales of 0, infinite and denormal ones, and ratios of any size are valid:
# kernels compute with them. `dialects.parameters` compares the parameters of an operator's tensors.


def verify_parameters(value: Value, where: str, notes: Notes) -> None:
    """The parameters of a tensor are valid, and along one of its dims, as many as that dim is long."""
    element = value.type.element
    if isinstance(element, (UniformQuantizedType, UniformQuantizedSubChannelType)):
        return
    if isinstance(element, UniformQuantizedPerAxisType):
        _verify_axis(value, element, where, notes)
        return
    raw = value.info.get("quantization") if value.info else None
    if raw is None:
        return
    if raw.get("details") is not None:
        what = f"has quantization details of type {raw['details'][0]}, which stay as they are"
        notes.warn(where, what, remedy="state scales and zero points to have it converted")
        return
    if not value.type.storage.is_integer:
        return
    try:
        quantized_element(raw, value.type.storage)
    except ValueError as error:
        if value.type.storage.bits <= NARROW:
            notes.fail(f"{where}.quantization", str(error))
        notes.warn(f"{where}.quantization", f"{error}, so it is ignored", remedy="leave the quantization out")


def _verify_axis(value: Value, element: UniformQuantizedPerAxisType, where: str, notes: Notes) -> None:
    shape, count = value.type.shape, element.scales.size
    if shape is None:
        return
    axis = value.info.get("quantized_dimension", element.axis)
    if axis >= len(shape):
        described = f"quantized_dimension {axis} is not a dim of a tensor of rank {len(shape)}"
        if element.axis or not shape:
            notes.fail(f"{where}.quantization", described)
        what = f"{described}; it is read as 0, the only dim, and a conversion writes 0"
        notes.warn(f"{where}.quantization", what, remedy="write 0")
        return
    dim = shape[element.axis]
    if dim is not None and dim != count:
        notes.fail(f"{where}.quantization", f"{count} scales for dim {element.axis}, which is {dim} long")


# Shapes and data: dims, numbers of elements, bytes of constants, string and sparse tensors, data outside the
# flatbuffer. Source: `VerifyTensors` in tflite/core/tools/verifier.cc; strings: tflite/string_util.h (count, then count
# + 1 offsets, then the characters); sparse tensors: `SparsityParameters` in schema.fbs. No size that a file states is
# allocated.

MOST_DIMS: Final = 32
MOST_ELEMENTS: Final = (1 << 31) - 1
"""An interpreter counts elements in an int32."""

_STRING: Final = SCALARS["!tfl.string"]


def verify_tensor(value: Value, where: str, notes: Notes) -> None:
    """The shape of a tensor, and its data if it has any."""
    shape = value.type.shape
    if shape is not None:
        elements = 1
        for dim in shape:
            if dim is None:
                continue
            if dim < 0:
                notes.fail(
                    where, f"shape {_brief(shape)} has a negative dim", hint="unknown dims belong in shape_signature"
                )
            if dim > 1:
                elements *= dim
                if elements > MOST_ELEMENTS:
                    notes.fail(where, f"shape {_brief(shape)} has more elements than an interpreter can count")
        if len(shape) > MOST_DIMS:
            notes.fail(where, f"{len(shape)} dims; the most that can be handled is {MOST_DIMS}")
    if value.info:
        _verify_signature(value, where, notes)
    if value.buffer is not None and value.buffer.data.size:
        _verify_data(value, where, notes)


def _brief(shape: Sequence[int | None]) -> str:
    listed = ", ".join("?" if d is None else str(d) for d in shape[:8])
    return f"[{listed}{', ...' if len(shape) > 8 else ''}]"


def _verify_signature(value: Value, where: str, notes: Notes) -> None:
    """A shape signature that contradicts the shape, which the reader keeps in `info`."""
    signature = value.info.get("shape_signature")
    if signature is None or not len(signature) or value.type.shape is None:
        return
    shape = value.type.shape
    if len(signature) != len(shape):
        notes.fail(where, f"shape_signature has {len(signature)} dims and the shape {len(shape)}")
    for sign, dim in zip(signature, shape, strict=True):
        if sign < -1:
            notes.fail(where, f"shape_signature has the dim {sign}")
        if sign not in (-1, dim) and dim is not None:
            what = f"shape_signature {_brief(tuple(signature))} contradicts shape {_brief(shape)}, which is used"
            notes.warn(where, what, remedy="write the same sizes in both")


def _verify_data(value: Value, where: str, notes: Notes) -> None:
    kind, shape = value.type.storage, value.type.shape
    assert value.buffer is not None
    data = value.buffer.data
    if value.info.get("is_variable"):
        notes.fail(where, "is a variable and has constant data")
    if kind == _STRING:
        _verify_strings(data, None if shape is None or None in shape else prod(d or 0 for d in shape), where, notes)
        return
    if shape is None or None in shape:
        notes.fail(where, f"has {data.size} bytes of data, but a dim of its shape is unknown")
    sparsity = value.info.get("sparsity")
    elements = prod(d or 0 for d in shape) if sparsity is None else _sparse_elements(sparsity, shape, where, notes)
    if not kind.bits:
        notes.fail(where, f"a tensor of type {kind} cannot have data")
    expected = -(-elements * kind.bits // 8)
    if data.size != expected:
        described = f"{elements} elements of type {kind}" + (
            ", sparse," if sparsity is not None else f", shape {_brief(shape)},"
        )
        notes.fail(where, f"{described} take {expected} bytes, but its buffer has {data.size}")


def _verify_strings(data: np.ndarray, count: int | None, where: str, notes: Notes) -> None:
    string_count = int(data[:4].view("<u4")[0]) if data.size >= 4 else -1
    start = 4 * (string_count + 2)
    if string_count < 0 or start > data.size:
        notes.fail(where, f"string data of {data.size} bytes are too short for their table of offsets")
    offsets = data[4:start].view("<i4").astype(np.int64)
    if offsets[0] != start or offsets[-1] != data.size or (np.diff(offsets) < 0).any():
        notes.fail(where, "string data have offsets out of order")
    if count is not None and string_count != count:
        notes.fail(where, f"string data hold {string_count} strings, but the shape has {count} elements")


def _sparse_elements(sparsity: Mapping[str, Any], shape: Sequence[int | None], where: str, notes: Notes) -> int:
    """Number of elements that a sparse tensor stores. Dense levels multiply it, compressed levels count indices."""
    order, levels = sparsity["traversal_order"], sparsity["dim_metadata"]
    blocks = () if sparsity["block_map"] is None else sparsity["block_map"]
    rank = len(shape)
    if order is None or levels is None or len(order) != len(levels) or len(order) != rank + len(blocks):
        notes.fail(where, "sparsity does not describe every dim and block")
    if sorted(order[:rank]) != list(range(rank)) or sorted(order[rank:]) != list(range(rank, len(order))):
        notes.fail(where, f"sparsity's traversal_order {_brief(tuple(order))} is not a permutation of dims and blocks")
    sizes = [int(d or 0) for d in shape] + [0] * len(blocks)
    for block, (dim, level) in enumerate(zip(order[rank:], levels[rank:], strict=True)):
        size, mapped = level["dense_size"], blocks[block]
        if size <= 0 or not 0 <= mapped < rank:
            notes.fail(where, f"sparsity's block {block} has size {size} and dim {mapped}")
        sizes[dim] = size
        sizes[mapped] //= size
    stored = 1
    for dim, level in zip(order, levels, strict=True):
        if level["format"] == "DENSE":
            if level["dense_size"] != sizes[dim]:
                notes.fail(where, f"sparsity's dense_size {level['dense_size']} is not the dim's {sizes[dim]}")
            stored *= sizes[dim]
        else:
            stored = _compressed(level, stored, sizes[dim], where, notes)
        if stored > MOST_ELEMENTS:
            notes.fail(where, "sparsity describes more elements than an interpreter can count")
    return stored


def _compressed(level: Mapping[str, Any], before: int, size: int, where: str, notes: Notes) -> int:
    segments, indices = (_index_vector(level[key]) for key in ("array_segments", "array_indices"))
    if segments is None or indices is None:
        notes.fail(where, "sparsity has a compressed dim without segments or indices")
    if len(segments) != before + 1 or segments[0] < 0 or (np.diff(segments) < 0).any() or segments[-1] != len(indices):
        notes.fail(where, "sparsity's segments do not count its indices")
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        notes.fail(where, f"sparsity has an index outside a dim of {size}")
    return len(indices)


def _index_vector(union: tuple[str, Mapping[str, Any]] | None) -> np.ndarray | None:
    values = None if union is None else union[1]["values"]
    return None if values is None else np.asarray(values, np.int64)


def verify_external(module: Module, notes: Notes) -> None:
    """Data outside the flatbuffer: ranges behind it do not overlap, references to other files resolve."""
    ranges = sorted(
        (int(b.external["offset"]), int(b.external["size"]), i)
        for i, b in enumerate(module.buffers)
        if b.external and b.external.get("offset", 0) > 1 and b.external.get("size")
    )
    for (start, size, one), (following, length, other) in pairwise(ranges):
        if following < start + size and (start, size) != (following, length):
            notes.fail(f"Model.buffers[{other}]", f"its data overlap those of buffer {one}")
    groups = len(module.info.get("external_buffer_groups") or ())
    entries = module.info.get("external_buffers") or ()
    for index, entry in enumerate(entries):
        if entry["group"] >= groups:
            notes.fail(f"Model.external_buffers[{index}].group", f"there is no group {entry['group']} among {groups}")
    known = {entry["id"] for entry in entries}
    for index, function in enumerate(module.functions):
        for number, value in enumerate(function.tensors):
            if external := value.info.get("external_buffer", 0):
                where = f"subgraph {index}, tensor {number} '{value.name}'"
                if external not in known:
                    notes.fail(where, f"there is no external buffer {external}")
                if value.buffer is not None and value.buffer.data.size:
                    notes.fail(where, "has data both inside and outside the file")


_VERSION = 3


def verify_module(module: Module, notes: Notes) -> list[str]:
    """Checks a module. InvalidModelError at the first defect; returns the harmless ones and those noted before, which
    become its `warnings`."""
    if module.version != _VERSION:
        notes.fail("Model.version", f"schema version {module.version}, not {_VERSION}")
    if not module.functions:
        notes.fail("Model.subgraphs", "there is no subgraph")
    if module.buffers and module.buffers[0].data.size:
        what = "holds data, but stands for no buffer, and no tensor can use them"
        notes.warn("Model.buffers[0]", what, remedy="leave it empty")
    verify_operator_codes(module, notes)
    verify_external(module, notes)
    for index, function in enumerate(module.functions):
        _verify_tensors(function, index, notes)
        verify_flow(function, index, notes)
    verify_signatures(module, notes)
    verify_calls(module, notes)
    for op in module.ops():
        _verify_op(module, op, notes)
    module.warnings = notes.finish()
    return module.warnings


def verify_operators(module: Module) -> None:
    """Checks the operators of TFLite of a module that no file holds, and what they call. InvalidModelError at the first
    defect; ops of other dialects have constraints of their own."""
    notes = Notes()
    verify_calls(module, notes)
    for op in module.ops():
        if op.name.startswith("tfl."):
            _verify_op(module, op, notes)


def _verify_tensors(function: Function, index: int, notes: Notes) -> None:
    used = set(function.values())
    for number, value in enumerate(function.tensors):
        where = f"subgraph {index}, tensor {number} '{value.name}'"
        try:
            verify_tensor(value, where, notes)
            verify_parameters(value, where, notes)
        except InvalidModelError as error:
            if value in used:
                raise
            notes.warn(error.where, f"{error.reason.what}, but no operator uses it", remedy="remove the tensor")


def _verify_op(module: Module, op: Op, notes: Notes) -> None:
    if not isinstance(op, Operator):
        notes.fail_op(op, f"{op.name} is not in the operator table")
    if op.info:
        _verify_options(op, notes)
    if (reason := compiled(type(op)).values(op)) is not None:
        notes.fail_op(op, reason)
    verify_call_arity(module, op, notes)
    for attribute in op.checked_attributes:
        check_attribute(attribute, op, notes)
    for trait in op.checked_traits:
        trait.check(op, notes)


def _verify_options(op: Operator, notes: Notes) -> None:
    """The options table is that of the operator, or it is left out and the operator can do without."""
    if "options" not in op.info or isinstance(op, Custom):
        return
    options = op.info["options"]
    expected = options_of(builtin_of(op.name))
    if options is not None:
        notes.fail_op(op, f"has {options} where {expected or 'no options'} belongs")
    if expected is not None and table(expected).fields and not op.has(Undescribed):
        notes.warn_op(op, f"has no {expected}, so its attributes are taken to be 0", remedy=f"write its {expected}")
