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
FORMS: Final[Mapping[str, Form]] = {
    ORIGINAL: Form(None, ".tflite"),
    "`integer`": Form({}, ".tflite"),
    "`--mac float32`": Form({"mac": "float32"}, ".tflite"),
    "`--target portable`": Form({"target": "portable"}, ".tflite"),
    "`out.onnx`": Form({"format": "onnx"}, ".onnx"),
    "`out.mlir`": Form({"format": "mlir"}, ".mlir"),
    **{f"`out.tosa --target {npu}`": Form({"format": "tosa", "target": npu}, ".tosa") for npu in NPUS},
}
"""By their names on the page."""
_TFLITE: Final = (ORIGINAL, "`integer`", "`--mac float32`", "`--target portable`")


class Tool(NamedTuple):
    """A tool: its name on the page, and to target_worker.py; whose environment it is in; the forms that it is given.
    signless: its integers have no sign, so that uint8 comes back as int8."""

    title: str
    runner: str
    environment: str
    forms: Sequence[str]
    signless: bool = False


TOOLS: Final = (
    Tool("ONNX Runtime", "onnxruntime", "onnxruntime", (ORIGINAL, "`out.onnx`")),
    Tool("tf2onnx and ONNX Runtime", "onnxruntime", "onnxruntime", _TFLITE),
    Tool("OpenVINO", "openvino", "openvino", (*_TFLITE, "`out.onnx`")),
    Tool("TFLite Micro", "tflm", "tflm", _TFLITE),
    Tool("TFLite, XNNPACK", "xnnpack", "xnnpack", _TFLITE),
    Tool("TFLite, optimized kernels", "optimized", "xnnpack", _TFLITE),
    Tool("IREE", "iree", "iree", ("`out.mlir`",), signless=True),
    *(Tool(f"Vela, {npu}", npu, "vela", (ORIGINAL, f"`out.tosa --target {npu}`")) for npu in NPUS),
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
