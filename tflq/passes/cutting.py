"""Cutting a model: tensors become outputs, and what comes behind them is dropped.

Outputs that do not depend on a cut tensor stay, in their order; the cut tensors follow in the order they are given. An
operator goes if nothing that stays needs it and it is pure or behind the cut. Inputs stay, read or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from tflq.analysis.variables import variable_name
from tflq.dialects.calls import entry_functions
from tflq.dialects.effects import is_pure
from tflq.dialects.tfl.control import Custom
from tflq.dialects.tfl.state import AssignVariable, ReadVariable, VarHandle
from tflq.dialects.tosa.state import VariableRead, VariableWrite
from tflq.errors import OptionError, Reason, UnsupportedError
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops, unneeded
from tflq.passes.entry import keep

__all__ = ["cut_at", "cut_before_custom"]

_TOSA_CUSTOM: Final = "tosa.custom"
"""No class declares it: nothing is known of its operands."""
_Read: TypeAlias = ReadVariable | VariableRead
_Write: TypeAlias = AssignVariable | VariableWrite


def cut_at(module: Module, names: Sequence[str]) -> Module:
    """The module, changed in place, up to the named tensors, which are outputs now with all that their types say.

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
    entries, found = entry_functions(module), False
    for index, function in enumerate(module.functions):
        customs = [op for op in function.ops if isinstance(op, Custom) or op.name == _TOSA_CUSTOM]
        if not customs:
            continue
        found = True
        if index not in entries:
            module.warnings.append(
                f"subgraph {index}: its custom operators are not cut off, because another operator runs it; cut before "
                "that one (--cut TENSOR)"
            )
            continue
        behind = _behind(function, [v for op in customs for v in op.results], customs)
        read = (v for op in customs for v in op.operands if v is not None and v.producer is not None)
        _cut(module, function, list(dict.fromkeys(v for v in read if v.producer not in behind)), behind)
    if not found:
        module.warnings.append(
            "nothing is cut off, because the model has no custom operator; leave --cut-before-custom out"
        )
    return keep(module, entries)


def _named(function: Function, names: Sequence[str]) -> list[Value]:
    """The results with these names, in their order."""
    values = []
    for name in dict.fromkeys(names):
        found = [v for op in function.ops for v in op.results if v.name == name]
        if len(found) > 1:
            raise OptionError(Reason(f"{len(found)} tensors are called '{name}'", value=name))
        values += found
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
    """Makes the values outputs, in the place of those that are behind them."""
    lost = {v for v in function.outputs if v.producer in behind and v not in values}
    outputs = [v for v in function.outputs if v not in lost]
    outputs += [v for v in values if v not in outputs]
    if not outputs:
        raise UnsupportedError(
            "the model cannot be cut:", [Reason("no output would be left", module.source, remedy="cut further back")]
        )
    dead = unneeded(function.ops, outputs, lambda op: is_pure(op) or (op in behind and not _stores(op, behind)))
    _check_state(module, dead)
    function.outputs = outputs
    remove_ops(function, dead)
    _drop_signatures(module, lost)


def _stores(op: Op, behind: set[Op]) -> bool:
    """Whether an op writes what comes before the cut, or is at it, to a variable."""
    return isinstance(op, _Write) and all(v is None or v.producer not in behind for v in op.operands)


def _check_state(module: Module, dead: set[Op]) -> None:
    """Refuses to drop what writes a variable that is still read."""
    kept = {_variable(op) for op in module.ops() if op not in dead and isinstance(op, _Read)}
    wrong = [
        Reason.at(op.location, "it writes state that is read before the cut", remedy="cut behind it")
        for op in sorted(dead, key=lambda op: str(op.location))
        if isinstance(op, _Write) and _variable(op) in kept
    ]
    if wrong:
        raise UnsupportedError("the model cannot be cut:", wrong)


def _variable(op: _Read | _Write) -> object:
    """What names the variable that an op reads or writes."""
    if isinstance(op, (VariableRead, VariableWrite)):
        return op.variable
    handle = op.resource.producer
    return variable_name(handle) if isinstance(handle, VarHandle) else None


def _drop_signatures(module: Module, lost: set[Value]) -> None:
    """Drops the signatures that name what is no output any more."""
    for signature in list(module.signatures or ()):
        names = [name for name, value in signature.outputs or () if value in lost]
        if names and module.signatures is not None:
            module.signatures.remove(signature)
            listed = ", ".join(f"'{name}'" for name in names)
            module.warnings.append(
                f"signature '{signature.key or ''}' is dropped, because {listed} is behind the cut; run the model by "
                "its inputs and outputs"
            )
