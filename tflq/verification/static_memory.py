"""Whether the interpreter allocates all of a model before it runs."""

from __future__ import annotations

import os

import numpy as np

from tflq.verification.worker import RESOLVERS, load

__all__ = ["first_dynamic", "interpreter_name"]


def interpreter_name() -> str:
    """Name and version of the interpreter that is installed; "" for none."""
    try:
        return load()[0]
    except LookupError:
        return ""


def first_dynamic(model: str | os.PathLike[str]) -> str | None:
    """The first operator result of the first subgraph without memory after `allocate_tensors`, as "operator 3 (SLICE)";
    None if all have some. Texts, which never have any before a run, do not count.

    Runs in the calling process, which an interpreter that aborts takes with it. RuntimeError or ValueError if it
    refuses the model; LookupError if none is installed.
    """
    _, interpreter, resolvers = load()
    opened = interpreter(
        model_path=os.fspath(model),
        experimental_op_resolver_type=getattr(resolvers, RESOLVERS["optimized"]),  # it has all kernels
        num_threads=1,
    )
    opened.allocate_tensors()
    texts = {int(d["index"]) for d in opened.get_tensor_details() if d["dtype"] in (np.bytes_, np.str_, np.object_)}
    for op in opened._get_ops_details():
        for tensor in op["outputs"]:
            if tensor >= 0 and int(tensor) not in texts:
                try:
                    opened.get_tensor(int(tensor))
                except (ValueError, RuntimeError):
                    return f"operator {int(op['index'])} ({op['op_name']})"
    return None
