"""Shapes of variables and tables. A variable holds what the file says; nothing of another shape is put into it.

Sources: kernels/var_handle.cc, read_variable.cc, assign_variable.cc, hashtable.cc, hashtable_find.cc,
hashtable_import.cc, hashtable_size.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.state import (
    AssignVariable,
    Hashtable,
    HashtableFind,
    HashtableImport,
    HashtableSize,
    ReadVariable,
    VarHandle,
)
from tflq.ir.types import Shape
from tflq.shapes.site import NotInferred, Site, shape_of, text

__all__: list[str] = []


@shape_of(VarHandle, ReadVariable)
def _read(op: VarHandle | ReadVariable, site: Site) -> Shape:
    stated = op.result.type.shape
    if stated is None or None in stated:
        raise NotInferred("the file does not say what shape the variable has")
    return stated


@shape_of(AssignVariable)
def _assign(op: AssignVariable, site: Site) -> list[Shape]:
    stated, dims = op.value.type.shape, site.dims(op.value)
    if dims != stated:
        raise NotInferred(f"its variable holds {text(stated)}, and it is given {text(dims)}")
    return []


@shape_of(HashtableImport)
def _import(op: HashtableImport, site: Site) -> list[Shape]:
    return []


@shape_of(Hashtable, HashtableSize)
def _one_number(op: Hashtable | HashtableSize, site: Site) -> Shape:
    return (1,)


@shape_of(HashtableFind)
def _hashtable_find(op: HashtableFind, site: Site) -> Shape:
    return site.dims(op.keys)
