"""The kernel sets that a file names."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from tflq.formats.backend import opening
from tflq.formats.sources import read
from tflq.numerics.kernel_sets import IN_FILE, NAMES, Exactness, kernel_set
from tflq.tools.verify.model_file import ModelFile
from tflq.tools.verify.runner import Resolver


def exactness_of(path: str) -> Exactness | None:
    """The kernel sets in the metadata of a file; None if it has none."""
    format = opening(path)
    texts: Mapping[str, bytes] = {}
    if format.interpreted:
        texts = {name: data for name, data in ModelFile(path).metadata.items() if name == IN_FILE}
    elif format.name == "onnx" and find_spec("onnx"):
        import onnx

        model = onnx.load(path, load_external_data=False)
        texts = {each.key: each.value.encode() for each in model.metadata_props}
    elif format.name == "tosa":
        texts = {m.name or "": m.buffer.data.tobytes() for m in read(path).metadata or ()}
    return Exactness.read(texts[IN_FILE]) if IN_FILE in texts else None


def resolver_for(exactness: Exactness | None) -> Resolver:
    """The kernels of the interpreter that a file's set is of: those of its delegate, if the set has one."""
    if exactness is None or exactness.name not in NAMES:
        return "reference"
    return "reference" if kernel_set(exactness.name).delegated is None else "default"
