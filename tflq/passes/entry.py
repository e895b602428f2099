"""One entry of a model: the function of one signature, and what it runs."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.calls import callees, renumber
from tflq.errors import OptionError, Reason
from tflq.ir.core import Module

__all__ = ["entries", "extract", "keep"]

_OF_ALL = ("metadata_buffer", "absent", "no_buffers")
"""What a file says by indices into all that it holds."""


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
    kept = [s for s in module.signatures or () if s is chosen or (chosen is None and s.function == first)]
    if module.signatures is not None:
        module.signatures = kept
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
    kept = [s for s in module.signatures or () if s.function in numbers]
    for signature in kept:
        signature.function = numbers[signature.function]
    return Module(
        functions,
        kept if module.signatures is not None else None,
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
