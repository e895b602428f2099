"""Variables and tables."""

from __future__ import annotations

from typing import Any

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Stated
from tflq.dialects.traits.effects import Impure, Unquantized
from tflq.ir.core import Value
from tflq.ir.types import Shape

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

    def infer(self, _: Stated) -> Shape:
        return self.resource.type.shape


class ReadVariable(Operator, name="tfl.read_variable"):
    """What a variable holds. Source: kernels/read_variable.cc."""

    __slots__ = ()
    resource: Value = operand()
    value: Value = result()
    traits = (Impure(),)

    def infer(self, site: Stated) -> Shape:
        return site.variable(self.resource, self.value, False)


class AssignVariable(Operator, name="tfl.assign_variable"):
    """Writes a variable. Source: kernels/assign_variable.cc."""

    __slots__ = ()
    resource: Value = operand()
    value: Value = operand()
    traits = (Impure(),)

    def infer(self, site: Stated) -> list[Shape]:
        site.variable(self.resource, self.value, True)
        return []


class Hashtable(Operator, name="tfl.hashtable"):
    """The handle of a table. Source: kernels/hashtable.cc."""

    __slots__ = ()
    table: Value = result()
    table_id: int = attribute(default=0)
    key_dtype: str = attribute(default="FLOAT32")
    value_dtype: str = attribute(default="FLOAT32")
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))

    def infer(self, _: Stated) -> Shape:
        return (1,)


class HashtableFind(Operator, name="tfl.hashtable_find"):
    """Values by keys. Source: kernels/hashtable_find.cc."""

    __slots__ = ()
    table: Value = operand()
    keys: Value = operand()
    default: Value = operand()
    output: Value = result()
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))

    def infer(self, site: Stated) -> Shape:
        return site.dims(self.keys)


class HashtableImport(Operator, name="tfl.hashtable_import"):
    """Fills a table. Source: kernels/hashtable_import.cc."""

    __slots__ = ()
    table: Value = operand()
    keys: Value = operand()
    values: Value = operand()
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))

    def infer(self, _: Stated) -> list[Shape]:
        return []


class HashtableSize(Operator, name="tfl.hashtable_size"):
    """The number of its entries. Source: kernels/hashtable_size.cc."""

    __slots__ = ()
    table: Value = operand()
    output: Value = result()
    traits = (Impure(), Unquantized("its tensors are handles, keys and strings"))

    def infer(self, _: Stated) -> Shape:
        return (1,)
