"""Shapes of variables and tables.

The kernel of READ_VARIABLE goes by the shape that the file gives its result; if that is of rank 0, by what the variable
holds. Where inputs are not resized, all that is read from a variable and assigned to it has one shape.

Sources: kernels/var_handle.cc, read_variable.cc, assign_variable.cc, hashtable.cc, hashtable_find.cc,
hashtable_import.cc, hashtable_size.cc.
"""

from __future__ import annotations

from tflq.dialects.inference import NotInferred, text
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
from tflq.shapes.site import Site, shape_of
from tflq.shapes.stating import stored_shape

__all__: list[str] = []


@shape_of(VarHandle)
def _var_handle(op: VarHandle, site: Site) -> Shape:
    return op.result.type.shape


@shape_of(ReadVariable)
def _read(op: ReadVariable, site: Site) -> Shape:
    stated = op.result.type.shape
    if site.accesses is None:
        if stated is None or None in stated:
            raise NotInferred("the file does not say what shape the variable has")
        return stated
    return _held(op, stored_shape(op.result) if stated else None, site)


@shape_of(AssignVariable)
def _assign(op: AssignVariable, site: Site) -> list[Shape]:
    if site.accesses is not None:
        _held(op, site.dims(op.value), site)
    return []


def _held(op: ReadVariable | AssignVariable, shape: Shape, site: Site) -> Shape:
    """The shape of the variable that an operator accesses, which has to be that of its own value, if it has one."""
    for access in [] if site.accesses is None else site.accesses(op.resource):
        value = access.value
        found = site.shape(value) if access.written else stored_shape(value) or None
        if found is None or None in found:
            continue
        if shape is not None and None not in shape and shape != found:
            done = "initialized with" if access.once is not None else "assigned" if access.written else "read as"
            raise NotInferred(
                f"'{op.value.name}' is {text(shape)}, and its variable '{access.name}' is {done} '{value.name}' "
                f"{text(found)}"
            )
        shape = found
    if shape is None and op.value.type.shape is None:
        raise NotInferred(
            "nothing says what shape its variable has: neither what it is initialized with (CALL_ONCE), nor what is "
            "read or assigned elsewhere"
        )
    return () if shape is None else shape


@shape_of(HashtableImport)
def _import(op: HashtableImport, site: Site) -> list[Shape]:
    return []


@shape_of(Hashtable, HashtableSize)
def _one_number(op: Hashtable | HashtableSize, site: Site) -> Shape:
    return (1,)


@shape_of(HashtableFind)
def _hashtable_find(op: HashtableFind, site: Site) -> Shape:
    return site.dims(op.keys)
