"""Passes on the source model, before anything is lowered: which part of it is converted, and what is kept in mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

import numpy as np

from tflq.analysis.known import variable_name
from tflq.base.errors import OptionError, Reason, UnsupportedError
from tflq.dialects.effects import callees, entry_functions, is_pure, is_variable, renumber
from tflq.dialects.forms import ModuleForm
from tflq.dialects.tfl.state import AssignVariable, Custom, ReadVariable, VarHandle, state_runtime
from tflq.dialects.tosa.movement import VariableRead, VariableWrite
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.rewriting import remove_ops, split_dead
from tflq.transforms.pass_manager import Decisions, Pass, PassResult, SourceNames


class ExtractSignature(Pass):
    """Keeps the function of one signature, and what it runs. `key`: of the signature; none: the first function."""

    name: ClassVar[str] = "extract-signature"
    title: ClassVar[str] = "extraction of a signature"

    def __init__(self, key: str = "") -> None:
        self.key: Final = key

    def run(self, module: Module) -> PassResult:
        return PassResult(extract(module, self.key), modified=True)


class Cut(Pass):
    """Keeps the part up to some tensors, by name, which become outputs."""

    name: ClassVar[str] = "cut"
    title: ClassVar[str] = "cutting"

    def __init__(self, tensors: tuple[str, ...] = ()) -> None:
        self.tensors: Final = tensors

    def run(self, module: Module) -> PassResult:
        return PassResult(cut_at(module, self.tensors), modified=True)


class CutBeforeCustom(Pass):
    """Keeps the part up to what custom operators read."""

    name: ClassVar[str] = "cut-before-custom"
    title: ClassVar[str] = "cutting before custom operators"

    def run(self, module: Module) -> PassResult:
        return PassResult(cut_before_custom(module), modified=True)


class RecordNames(Pass):
    """Notes the names of all tensors (`SourceNames`), so that no new tensor gets one of these."""

    name: ClassVar[str] = "record-names"

    def run(self, module: Module) -> PassResult:
        names = frozenset(v.name for f in module.functions for group in (f.tensors, f.values()) for v in group)
        module.record.note(SourceNames(names))
        return PassResult(module, modified=False)


# Parts of a model by function: one signature, and what it runs.


_OF_ALL = ("metadata_buffer", "absent", "no_buffers")
"""Entries of a file with indices that do not hold for a part of it."""


def entries(module: Module) -> list[str]:
    """The keys of a module's signatures, in order; "" for its first function where it has none."""
    return [signature.key or "" for signature in module.signatures or ()] or [""]


def extract(module: Module, key: str) -> Module:
    """The module reduced to one entry: its function comes first, then those that it runs, with their indices anew.

    "" is the first function where no signature has that key. The functions are those of `module`, which is not to be
    used any more; buffers and operator codes are those they need. OptionError: there is no such entry.
    """
    chosen = next((s for s in module.signatures or () if (s.key or "") == key), None)
    if chosen is None and key:
        known = ", ".join(repr(k) for k in entries(module) if k)
        remedy = f"there are {known}" if known else "the model has none"
        raise OptionError(Reason(f"there is no signature {key!r}", module.source, value=key, remedy=remedy))
    first = 0 if chosen is None else chosen.function
    signatures = [s for s in module.signatures or () if s is chosen or (chosen is None and s.function == first)]
    if module.signatures is not None:
        module.signatures = signatures
    return keep(module, [first])


def keep(module: Module, first: Sequence[int]) -> Module:
    """The module reduced to some functions, in this order, and those that they run, with their indices anew; signatures
    of others go. The functions are those of `module`, which is not to be used any more."""
    order = _reached(module, first)
    numbers = {old: new for new, old in enumerate(order)}
    functions = [module.functions[index] for index in order]
    for function in functions:
        for op in function.ops:
            renumber(op, numbers)
    signatures = [s for s in module.signatures or () if s.function in numbers]
    for signature in signatures:
        signature.function = numbers[signature.function]
    return Module(
        functions,
        signatures if module.signatures is not None else None,
        module.metadata,
        module.description,
        module.version,
        info={name: item for name, item in module.info.items() if name not in _OF_ALL},
        source=module.source,
        warnings=list(module.warnings),
    )


def _reached(module: Module, first: Sequence[int]) -> list[int]:
    """Some functions and all that run from them, in the order they are met."""
    order = [*first]
    for index in order:
        for op in module.functions[index].ops:
            order.extend(dict.fromkeys(i for i in callees(op) if i not in order))
    return order


# Cutting: tensors become outputs, and what comes after them is dropped.


_TOSA_CUSTOM: Final = "tosa.custom"
"""No class declares it: nothing is known of its operands."""
_Read: TypeAlias = ReadVariable | VariableRead
_Write: TypeAlias = AssignVariable | VariableWrite


def cut_at(module: Module, names: Sequence[str]) -> Module:
    """The module, changed in place, up to the named tensors, which are outputs now with all that their types say.

    Outputs that do not depend on a cut tensor stay, in their order; the cut tensors follow in the order of the names.
    An operator is dropped if nothing that stays needs it and it is pure or after the cut. Inputs stay, read or not.
    Signatures that lose an output are dropped, with a warning. OptionError: no operator gives such a tensor, or several
    do. UnsupportedError: what comes behind the cut writes state that is read before it.
    """
    entries = entry_functions(module)
    cuts = {index: _named(module.functions[index], names) for index in entries}
    for name in names:
        if all(v.name != name for values in cuts.values() for v in values):
            raise OptionError(_unknown(module, entries, name))
    for index, values in cuts.items():
        if values:
            _cut(module, module.functions[index], values, _behind(module.functions[index], values))
    return keep(module, entries)


def cut_before_custom(module: Module) -> Module:
    """The module, changed in place, up to what its custom operators read, which are outputs now.

    Custom operators in branches and bodies stay, with a warning. A warning says, too, if nothing was cut.
    UnsupportedError: no output is left, or state as for `cut_at`.
    """
    entries, has_custom = entry_functions(module), False
    for index, function in enumerate(module.functions):
        customs = [op for op in function.ops if isinstance(op, Custom) or op.name == _TOSA_CUSTOM]
        if not customs:
            continue
        has_custom = True
        if index not in entries:
            module.warnings.append(
                f"subgraph {index}: its custom operators are not cut off, because another operator runs it; cut before "
                "that one (--cut TENSOR)"
            )
            continue
        behind = _behind(function, [v for op in customs for v in op.results], customs)
        read = (v for op in customs for v in op.present_operands if v.producer is not None)
        _cut(module, function, list(dict.fromkeys(v for v in read if v.producer not in behind)), behind)
    if not has_custom:
        module.warnings.append(
            "nothing is cut off, because the model has no custom operator; leave --cut-before-custom out"
        )
    return keep(module, entries)


def _named(function: Function, names: Sequence[str]) -> list[Value]:
    """The results with these names, in their order."""
    values = []
    for name in dict.fromkeys(names):
        same_name = [v for op in function.ops for v in op.results if v.name == name]
        if len(same_name) > 1:
            raise OptionError(Reason(f"{len(same_name)} tensors are called '{name}'", value=name))
        values += same_name
    return values


def _unknown(module: Module, entries: Iterable[int], name: str) -> Reason:
    functions = [module.functions[index] for index in entries]
    if any(v.name == name for function in functions for v in function.inputs):
        return Reason(f"'{name}' is an input: there is nothing before it", module.source, value=name)
    known = [v.name for function in functions for op in function.ops for v in op.results if v.name]
    from difflib import get_close_matches  # only on this error

    near = get_close_matches(name, known, 3, 0.5)
    remedy = f"did you mean {', '.join(map(repr, near))}?" if near else "`tflq inspect --ir` shows the names"
    return Reason(f"no operator gives a tensor '{name}'", module.source, value=name, remedy=remedy)


def _behind(function: Function, values: Iterable[Value], ops: Iterable[Op] = ()) -> set[Op]:
    """The ops, and all that depend on the values."""
    reached, behind = set(values), set(ops)
    for op in function.ops:
        if op not in behind and not reached.isdisjoint(op.operands):
            behind.add(op)
        if op in behind:
            reached.update(op.results)
    return behind


def _cut(module: Module, function: Function, values: Sequence[Value], behind: set[Op]) -> None:
    """Makes the values outputs, instead of those that come after them."""
    removed = {v for v in function.outputs if v.producer in behind and v not in values}
    outputs = [v for v in function.outputs if v not in removed]
    outputs += [v for v in values if v not in outputs]
    if not outputs:
        raise UnsupportedError(
            "the model cannot be cut:", [Reason("no output would be left", module.source, remedy="cut further back")]
        )
    stay, dead = split_dead(function.ops, outputs, lambda op: is_pure(op) or (op in behind and not _stores(op, behind)))
    _check_state(module, dead)
    function.outputs = outputs
    remove_ops(function, dead, stay)
    _drop_signatures(module, removed)


def _stores(op: Op, behind: set[Op]) -> bool:
    """Whether an op writes to a variable what comes before the cut, or is at it."""
    return isinstance(op, _Write) and all(v is None or v.producer not in behind for v in op.operands)


def _check_state(module: Module, dead: set[Op]) -> None:
    """Refuses to drop what writes a variable that is still read."""
    variables = {_variable(op) for op in module.ops() if op not in dead and isinstance(op, _Read)}
    wrong = [
        Reason.at(op.location, "it writes state that is read before the cut", remedy="cut behind it")
        for op in sorted(dead, key=lambda op: str(op.location))
        if isinstance(op, _Write) and _variable(op) in variables
    ]
    if wrong:
        raise UnsupportedError("the model cannot be cut:", wrong)


def _variable(op: _Read | _Write) -> object:
    """The name of the variable that an op reads or writes."""
    if isinstance(op, (VariableRead, VariableWrite)):
        return op.variable
    handle = op.resource.producer
    return variable_name(handle) if isinstance(handle, VarHandle) else None


def _drop_signatures(module: Module, removed: set[Value]) -> None:
    """Drops the signatures that name a removed output."""
    for signature in list(module.signatures or ()):
        names = [name for name, value in signature.outputs or () if value in removed]
        if names and module.signatures is not None:
            module.signatures.remove(signature)
            listed = ", ".join(f"'{name}'" for name in names)
            module.warnings.append(
                f"signature '{signature.key or ''}' is dropped, because {listed} is behind the cut; run the model by "
                "its inputs and outputs"
            )


# Some operators of one function as a model.


def part(
    module: Module, index: int, ops: Collection[Op], constants: Mapping[Value, np.ndarray] | None = None
) -> Module:
    """The module reduced, in place, to some operators of function `index`, and to the functions that they run.

    What they read of other operators becomes an input, or a constant if `constants` has its data, of its storage dtype
    and in the shape that it has when the model runs. What others, or nobody, read of them is an output. Inputs are in
    the function's order, then in that of first use. Signatures and metadata go. Tensors keep their names; inputs and
    outputs with equal or empty names get others. The module is not to be used any more.
    """
    function, data = module.functions[index], constants or {}
    selected = [op for op in function.ops if op in ops]
    outside = read_from_outside(function, selected)
    function.outputs = _read_by_others(function, selected)
    for value in outside:
        value.producer = None
        if value in data:
            value.type = type(value.type)(data[value].shape, value.type.element)
            value.buffer = Buffer.of(data[value])
    function.inputs = [value for value in outside if value not in data]
    remove_ops(function, {op for op in function.ops if op not in ops})
    used = set(function.values())
    function.tensors = [value for value in function.tensors if value in used]
    _name(function)
    module.signatures = module.metadata = None
    return keep(module, [index])


def read_from_outside(function: Function, ops: Collection[Op]) -> list[Value]:
    """The values that the ops read and none of them gives, except constants and variable tensors."""
    inner = {value for op in ops for value in op.results}
    read = {v for op in ops for v in op.present_operands if v not in inner}
    ordered = [*function.inputs, *(v for op in ops for v in op.present_operands)]
    known = set(function.inputs)
    return [
        v for v in dict.fromkeys(ordered) if v in read and (v.producer is not None or v in known) and not is_variable(v)
    ]


def _read_by_others(function: Function, ops: Collection[Op]) -> list[Value]:
    """The results of the ops that others, the caller, or nobody reads."""
    inner = {v for op in ops for v in op.present_operands}
    others = {v for op in function.ops if op not in ops for v in op.present_operands}
    others.update(function.outputs)
    return [v for op in ops for v in op.results if v in others or v not in inner]


def _name(function: Function) -> None:
    """Names inputs and outputs whose name is empty or shared with another tensor."""
    counts = Counter(v.name for v in function.values())
    for kind, values in (("input", function.inputs), ("output", function.outputs)):
        for number, value in enumerate(values):
            if not value.name or counts[value.name] > 1:
                value.name = f"{value.name or kind}/{number}"


class SetMinRuntime(Pass):
    """States in the metadata which release of the runtime the operators need, if the source names one."""

    name: ClassVar[str] = "set-min-runtime"
    takes: ClassVar[ModuleForm] = "kernels"
    labels: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        lowered = any(decision.path != "kept" for decision in Decisions.of(module))
        return PassResult(module, state_runtime(module, selected=lowered))
