"""The site's page of the operators of all dialects, as `tflq/dialects` declares them."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from importlib import import_module

from tflq.dialects.constraints import FIXED, SIGNLESS, WORD
from tflq.dialects.declare import ANY, FLOAT, INTEGER, QUANTIZED, Attribute, Operator, Slot, Trait, Types
from tflq.ir.ops import dialect, dialects

HEAD = """# Operators

The operators of each dialect, by family, as `tflq/dialects` declares them.

- An operand or result with `?` may be left out; one with `...` is any number of values.
- Types follow a colon where the dialect declares them; `/` separates signatures, and all values of type `T` have the
  same one. Operators of TFLite take the types that kernels take: [coverage](coverage.md) lists them.
- An attribute without a default must be given.
- What holds of an operator wherever it occurs is a trait. The reader refuses a file that violates one, or warns.

## Traits

| trait | what it says |
|---|---|
"""
NAMED = {ANY: "any", INTEGER: "integers", FLOAT: "floats", QUANTIZED: "quantized"}
NAMED |= {FIXED: "signless integers", SIGNLESS: "signless integers and index"}
NAMED |= {WORD: "signless integers, index and floats"}


def page() -> str:
    """The page's text."""
    declared = [(name, found) for name in dialects() if (found := dialect(name)) is not None]
    classes: list[type[Operator]] = [c for _, found in declared for c in found.classes()]
    kinds = {type(trait) for c in classes for trait in c.traits}
    lines = [f"| `{kind.__name__}` | {_sentence(kind)} |" for kind in sorted(kinds, key=lambda k: k.__name__)]
    for name, found in declared:
        lines += ["", f"## {name}"]
        if found.package.startswith("tflq.dialects.") and found.package.endswith(f".{name}"):
            lines += ["", _cell(inspect.getdoc(import_module(found.package)) or "")]
        for family, ops in found.families.items():
            lines += ["", f"### {name}: {family}"] if len(found.families) > 1 else []
            text = _cell(inspect.getdoc(import_module(f"{found.package}.{family}")) or "")
            lines += [*([] if text in lines else ["", text]), ""]
            lines += ["| operator | what it computes | operands | results | attributes | traits |", "|---" * 6 + "|"]
            lines += [_row(c) for c in found.classes() if c.op_name.partition(".")[2] in ops]
    return HEAD + "\n".join(lines) + "\n"


def _row(declared: type[Operator]) -> str:
    short = declared.op_name.partition(".")[2]
    slots = (*declared.operand_slots, *declared.result_slots)
    used = Counter(types for slot in slots for types in dict.fromkeys(slot.types) if types.bound)
    shared = (types for types, count in used.items() if count > 1)
    variables = {types: f"{name} ({_named(types)})" for name, types in zip("TUVW", shared, strict=False)}
    cells = (
        f"`{short}`",
        _cell(inspect.getdoc(declared) or ""),
        _list(_slot(slot, variables) for slot in declared.operand_slots),
        _list(_slot(slot, variables) for slot in declared.result_slots),
        _list(map(_attribute, declared.attribute_slots.values())),
        _list(f"`{_cell(str(trait))}`" for trait in declared.traits),
    )
    return f"| {' | '.join(cells)} |"


def _slot(slot: Slot, variables: dict[Types, str]) -> str:
    suffix = "..." if slot.variadic else "?" if slot.optional else ""
    types = f": {' / '.join(_types(types, variables) for types in slot.types)}" if slot.types else ""
    return f"`{slot.name}{suffix}`{types}{', constant' if slot.constant else ''}"


def _types(types: Types, variables: dict[Types, str]) -> str:
    """Element types; a type variable with its types at the first mention only."""
    if types not in variables:
        return _named(types)
    name, _, listed = variables[types].partition(" ")
    variables[types] = name
    return f"{name} {listed}".strip()


def _named(types: Types) -> str:
    return next((text for known, text in NAMED.items() if types.names == known.names), str(types))


def _attribute(attribute: Attribute) -> str:
    default = "" if attribute.required else f" = {attribute.default!r}"
    limits = [word for word in ("positive", "finite", "unread") if getattr(attribute, word)]
    kind = f": {attribute.kind}" if attribute.kind is not None else ""
    return f"`{attribute.key}{kind}{default}`{''.join(f', {word}' for word in limits)}"


def _sentence(kind: type[Trait]) -> str:
    return _cell((inspect.getdoc(kind) or "").strip())


def _list(items: Iterator[str]) -> str:
    return "<br>".join(items)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
