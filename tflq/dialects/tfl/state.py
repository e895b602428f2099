"""Variables and tables."""

from __future__ import annotations

from typing import Any

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.traits.effects import Impure, Unquantized
from tflq.ir.core import Value

__all__ = [
    "AssignVariable",
    "Hashtable",
    "HashtableFind",
    "HashtableImport",
    "HashtableSize",
    "ReadVariable",
    "VarHandle",
]


class VarHandle(Operator, name="tfl.var_handle"):
    """The handle of a variable. Source: kernels/var_handle.cc."""

    __slots__ = ()
    resource: Value = result()
    container: Any = attribute(default=None)
    shared_name: Any = attribute(default=None)
    traits = (Impure(),)


class ReadVariable(Operator, name="tfl.read_variable"):
    """What a variable holds. Source: kernels/read_variable.cc."""

    __slots__ = ()
    resource: Value = operand()
    value: Value = result()
    traits = (Impure(),)


class AssignVariable(Operator, name="tfl.assign_variable"):
    """Writes a variable. Source: kernels/assign_variable.cc."""

    __slots__ = ()
    resource: Value = operand()
    value: Value = operand()
    traits = (Impure(),)


class Hashtable(Operator, name="tfl.hashtable"):
    """The handle of a table. Source: kernels/hashtable.cc."""

    __slots__ = ()
    table: Value = result()
    table_id: int = attribute(default=0)
    key_dtype: str = attribute(default="FLOAT32")
    value_dtype: str = attribute(default="FLOAT32")
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))


class HashtableFind(Operator, name="tfl.hashtable_find"):
    """Values by keys. Source: kernels/hashtable_find.cc."""

    __slots__ = ()
    table: Value = operand()
    keys: Value = operand()
    default: Value = operand()
    output: Value = result()
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))


class HashtableImport(Operator, name="tfl.hashtable_import"):
    """Fills a table. Source: kernels/hashtable_import.cc."""

    __slots__ = ()
    table: Value = operand()
    keys: Value = operand()
    values: Value = operand()
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))


class HashtableSize(Operator, name="tfl.hashtable_size"):
    """The number of its entries. Source: kernels/hashtable_size.cc."""

    __slots__ = ()
    table: Value = operand()
    output: Value = result()
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))
