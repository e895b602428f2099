"""A module in the tosa form → MLIR text of the `tosa` dialect.

Operators are in the generic form, which all versions of MLIR with TOSA 1.0 read alike. Compile-time-constant operands
are `tosa.const` and `tosa.const_shape` before their first use, equal ones shared; regions of control flow take nothing
from around them, so each has its own constants. A function per entry point, called by its signature's key; what
control flow calls becomes regions. Functions' arguments have the tensors' names, inner values as locations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tflq.dialects.calls import callees
from tflq.dialects.tosa.state import Variable
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.print_types import type_text as quantized_text
from tflq.ir.types import element_storage
from tflq.tosa.files.attribute_text import attributes_text
from tflq.tosa.files.literals import (
    constant_text,
    constant_type,
    element_text,
    string,
    type_text,
    value_pieces,
    value_text,
)
from tflq.tosa.operands import Constant, is_unsigned, operands
from tflq.tosa.requirements import Requirements, requirements
from tflq.tosa.target import Target

__all__ = ["mlir_pieces", "mlir_text"]


def mlir_text(module: Module, target: Target | None = None, *, function: int | None = None) -> str:
    """The text of a module; of one of its entry points if `function` says which."""
    return "".join(mlir_pieces(module, target, function=function))


def mlir_pieces(module: Module, target: Target | None = None, *, function: int | None = None) -> Iterator[str]:
    """The text in pieces, each an operator or a part of a constant at most."""
    target = target or Target()
    entries = _entries(module)
    chosen = {i: name for i, name in entries.items() if function in (None, i)} or {function or 0: "main"}
    called = _called(module, chosen)
    part = Module([module.functions[i] for i in called])
    yield _head(requirements(part, target))
    yield from _variables(part)
    for index, name in chosen.items():
        yield from _Function(module, index, name).lines()
    yield "}\n"


def _entries(module: Module) -> dict[int, str]:
    """The symbol of each entry point: those that signatures name, or the first function."""
    out: dict[int, str] = {}
    for signature in module.signatures or ():
        name = re.sub(r"[^\w.$]", "_", signature.key or "main", flags=re.ASCII)
        name = f"_{name}" if name[0].isdigit() else name
        while name in out.values():
            name += "_"
        out.setdefault(signature.function, name)
    return out or {0: "main"}


def _called(module: Module, entries: Sequence[int] | dict[int, str]) -> list[int]:
    """Functions and those that control flow in them calls."""
    found, todo = dict.fromkeys(entries), list(entries)
    while todo:
        for op in module.functions[todo.pop()].ops:
            new = [index for index in callees(op) if index not in found]
            found.update(dict.fromkeys(new))
            todo += new
    return list(found)


def _head(needs: Requirements) -> str:
    """What a module needs, in words and as the attribute that validators read.

    MLIR cannot read an attribute with an empty list; without one it takes both profiles and no extensions.
    """
    if not needs.extensions:
        return f"// {needs}\nmodule {{\n"
    return (
        f"// {needs}\nmodule attributes {{tosa.target_env = #tosa.target_env<"
        f'specification_version = "{needs.specification}", level = "{needs.level}", '
        f"profiles = [{', '.join(needs.profiles)}], extensions = [{', '.join(needs.extensions)}]>}} {{\n"
    )


def _variables(module: Module) -> Iterator[str]:
    """One declaration per name."""
    declared = {op.variable: op.initial_value for op in module.ops() if isinstance(op, Variable)}
    for name, initial in declared.items():
        shape = initial.type.shape or ()
        listed = f"dense<{list(shape)}> : tensor<{len(shape)}xindex>"
        element = element_text(element_storage(initial.type.element))
        yield (
            f'  "tosa.variable"() <{{sym_name = {string(name)}, var_shape = {listed}, type = {element}, '
            f"initial_value = {value_text(initial)[0]}}}> : () -> ()\n"
        )


class _Function:
    """One function; its values are numbered through all regions."""

    def __init__(self, module: Module, index: int, name: str) -> None:
        self.module = module
        self.function: Function = module.functions[index]
        self.name = name
        self.count = 0

    def number(self) -> str:
        """A name no value has yet."""
        self.count += 1
        return f"%{self.count - 1}"

    def lines(self) -> Iterator[str]:
        """The function's text."""
        body = _Region(self, self.function, [f"%arg{i}" for i in range(len(self.function.inputs))], "    ")
        for side, values in (("argument", self.function.inputs), ("result", self.function.outputs)):
            for i, value in enumerate(values):
                if (comment := _quantization(value)) is not None:
                    yield f"  // {side} {i}: {comment}\n"
        arguments = ", ".join(f"%arg{i}: {_named(value)}" for i, value in enumerate(self.function.inputs))
        results = ", ".join(map(_named, self.function.outputs))
        yield f"  func.func @{self.name}({arguments}) -> ({results}) {{\n"
        yield from body.lines()
        yield f"    return{_uses(body, self.function.outputs)}\n  }}\n"


def _named(value: Value) -> str:
    """An argument's or result's type, and its name."""
    name = f" {{tosa.tensor_name = {string(value.name)}}}" if value.name else ""
    return f"{type_text(value.type)}{name}"


def _quantization(value: Value) -> str | None:
    """What a caller has to know of stored integers."""
    words = []
    if (quantized := value.info.get("quantized")) is not None:
        words.append(quantized_text(quantized))
    if is_unsigned(value.type):
        words.append("unsigned")
    return ", ".join(words) or None


def _uses(region: _Region, values: Sequence[Value]) -> str:
    """` %0, %1 : type, type`; nothing for none."""
    if not values:
        return ""
    return f" {', '.join(region.names[v] for v in values)} : {', '.join(type_text(v.type) for v in values)}"


class _Region:
    """A function's ops in a region: names of its values, constants it has."""

    def __init__(self, parent: _Function, function: Function, arguments: Sequence[str], indent: str) -> None:
        self.parent = parent
        self.function = function
        self.names = dict(zip(function.inputs, arguments, strict=True))
        self.indent = indent
        self._constants: dict[tuple[str, bytes], str] = {}

    def lines(self) -> Iterator[str]:
        """The ops, each after the constants it is the first to use; then those of constant results."""
        for op in self.function.ops:
            if not isinstance(op, Variable):
                yield from self._op(op)
        for value in self.function.outputs:
            if value not in self.names:
                yield from self._value(value)

    def _op(self, op: Op) -> Iterator[str]:
        names, types = [], []
        for operand in operands(op):
            if isinstance(operand, Constant):
                line, name, type = self._constant(operand)
                yield line
            else:
                if operand not in self.names:
                    yield from self._value(operand)
                name, type = self.names[operand], type_text(operand.type)
            names.append(name)
            types.append(type)
        made = [self.parent.number() for _ in op.results]
        self.names.update(zip(op.results, made, strict=True))
        left = f"{', '.join(made)} = " if made else ""
        attributes = ", ".join(attributes_text(op))
        yield f'{self.indent}{left}"{op.name}"({", ".join(names)}){f" <{{{attributes}}}>" if attributes else ""}'
        if graphs := callees(op):
            yield " ("
            for i, index in enumerate(graphs):
                yield ", " if i else ""
                yield from self._graph(self.parent.module.functions[index])
            yield ")"
        results = ", ".join(type_text(v.type) for v in op.results)
        results = results if len(op.results) == 1 else f"({results})"
        location = f" loc({string(op.result.name)})" if made and op.result.name else ""
        yield f" : ({', '.join(types)}) -> {results}{location}\n"

    def _graph(self, function: Function) -> Iterator[str]:
        """A region of a function's ops."""
        indent = self.indent + "  "
        region = _Region(self.parent, function, [self.parent.number() for _ in function.inputs], indent)
        arguments = ", ".join(f"{region.names[v]}: {type_text(v.type)}" for v in function.inputs)
        yield "{\n" + (f"{self.indent}^bb0({arguments}):\n" if arguments else "")
        yield from region.lines()
        types = ", ".join(type_text(v.type) for v in function.outputs)
        names = ", ".join(region.names[v] for v in function.outputs)
        yield f'{indent}"tosa.yield"({names}) : ({types}) -> ()\n{self.indent}}}'

    def _value(self, value: Value) -> Iterator[str]:
        """A constant of the module."""
        self.names[value] = name = self.parent.number()
        location = f" loc({string(value.name)})" if value.name else ""
        yield f'{self.indent}{name} = "tosa.const"() <{{values = '
        yield from value_pieces(value)
        yield f"}}> : () -> {type_text(value.type)}{location}\n"

    def _constant(self, constant: Constant) -> tuple[str, str, str]:
        """A compile-time-constant operand: the line that makes it, "" if there is one; name; type."""
        type = constant_type(constant)
        key = type, constant.array.tobytes()
        name = self._constants.get(key)
        if name is not None:
            return "", name, type
        name = self._constants[key] = self.parent.number()
        op = "tosa.const_shape" if constant.is_shape else "tosa.const"
        return f'{self.indent}{name} = "{op}"() <{{values = {constant_text(constant)}}}> : () -> {type}\n', name, type
