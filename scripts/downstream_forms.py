"""What downstream.py tries: forms of a network, tools, and which tool is given which forms.

A form or a tool more is one line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from scripts.target_running import Difference


class Form(NamedTuple):
    """What a tool is given: what tflq.convert makes with these options, or the original; and the suffix of the file."""

    options: Mapping[str, Any] | None
    suffix: str


ORIGINAL: Final = "the original"
NPUS: Final = ("ethos-u55", "ethos-u65", "ethos-u85")
_TFLITE: Final = {
    "`integer`": Form({}, ".tflite"),
    "`--mac float32`": Form({"mac": "float32"}, ".tflite"),
    "`--target portable`": Form({"target": "portable"}, ".tflite"),
}
_MICRO: Final = {
    "`--target tflm`": Form({"target": "tflm"}, ".tflite"),
}
_ONNX: Final = {
    "`out.onnx`": Form({"format": "onnx"}, ".onnx"),
    "`out.onnx --form qdq`": Form({"format": "qdq"}, ".onnx"),
}
FORMS: Final[Mapping[str, Form]] = {
    ORIGINAL: Form(None, ".tflite"),
    **_TFLITE,
    **_MICRO,
    **_ONNX,
    "`out.mlir`": Form({"format": "mlir"}, ".mlir"),
    "`out.c`": Form({"format": "c", "choices": {"data": "inline"}}, ".c"),
    **{f"`out.tosa --target {npu}`": Form({"format": "tosa", "target": npu}, ".tosa") for npu in NPUS},
}
"""By their names on the page."""


class Tool(NamedTuple):
    """A tool: its name on the page, and to target_worker.py; whose environment it is in; the forms that it is given.
    signless: its integers have no sign, so that uint8 comes back as int8. compiles: it runs nothing."""

    title: str
    runner: str
    environment: str
    forms: Sequence[str]
    signless: bool = False
    compiles: bool = False


TOOLS: Final = (
    Tool("ONNX Runtime", "onnxruntime", "onnxruntime", (ORIGINAL, *_ONNX)),
    Tool("tf2onnx and ONNX Runtime", "onnxruntime", "onnxruntime", (ORIGINAL, *_TFLITE)),
    Tool("OpenVINO", "openvino", "openvino", (ORIGINAL, *_TFLITE, *_ONNX)),
    Tool("TFLite Micro", "tflm", "tflm", (ORIGINAL, *_TFLITE, *_MICRO)),
    Tool("TFLite, XNNPACK", "xnnpack", "xnnpack", (ORIGINAL, *_TFLITE)),
    Tool("TFLite, optimized kernels", "optimized", "xnnpack", (ORIGINAL, *_TFLITE)),
    Tool("IREE", "iree", "iree", ("`out.mlir`",), signless=True),
    Tool("a C compiler, `-O3`", "c", "c", ("`out.c`",)),
    *(Tool(f"Vela, {npu}", npu, "vela", (ORIGINAL, f"`out.tosa --target {npu}`"), compiles=True) for npu in NPUS),
)


class Row(NamedTuple):
    """What a tool makes of a form of a network. `refused`: why nothing; `found`: how its results differ, if it has any;
    `seconds` of a run; `size`: bytes of the file, 0 if there is none."""

    tool: Tool
    form: str
    network: str
    refused: str
    found: Difference | None
    seconds: float | None
    size: int

    @property
    def exact(self) -> bool:
        return self.found is not None and not self.found.wrong
