"""Shapes of variables: a variable holds what the file says of it, and nothing of another shape is put into it.

Sources: kernels/var_handle.cc, read_variable.cc, assign_variable.cc, hashtable_import.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.state import AssignVariable, HashtableImport, ReadVariable, VarHandle
from tflq.ir.types import Shape
from tflq.shapes.site import NotInferred, Site, shape, text

__all__: list[str] = []


@shape(VarHandle, ReadVariable)
def _read(site: Site) -> Shape:
    stated = site.op.result.type.shape
    if stated is None or None in stated:
        raise NotInferred("the file does not say what shape the variable has")
    return stated


@shape(AssignVariable)
def _assign(site: Site) -> list[Shape]:
    stated, dims = site.value(1).type.shape, site.dims(1)
    if dims != stated:
        raise NotInferred(f"its variable holds {text(stated)}, and it is given {text(dims)}")
    return []


@shape(HashtableImport)
def _import(_: Site) -> list[Shape]:
    return []
