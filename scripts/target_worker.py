"""The process in which one runtime runs models; it may die of one.

    PYTHON target_worker.py TOOL FOLDER NUMBER ...

Run as a script in the runtime's own environment: it imports nothing of tflq. Of each number it reads N.tflite and
N.in.npz, inputs by position, and writes N.out.npz, or N.txt with the reason why not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Runner = Callable[[Path, Sequence[np.ndarray]], Sequence[np.ndarray]]


def openvino() -> Runner:
    from openvino import Core

    core = Core()

    def run(path: Path, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        named = {f"in{i}": array for i, array in enumerate(inputs)}
        found = compiled({port: named[port.any_name] for port in compiled.inputs})
        return [found[port] for port in compiled.outputs]

    return run


def onnxruntime() -> Runner:
    import onnxruntime
    import tf2onnx

    def run(path: Path, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        model, _ = tf2onnx.convert.from_tflite(str(path), opset=18)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        named = {f"in{i}": array for i, array in enumerate(inputs)}
        found: Sequence[np.ndarray] = session.run(None, {port.name: named[port.name] for port in session.get_inputs()})
        return found

    return run


def tflm() -> Runner:
    from tflite_micro.python.tflite_micro import runtime

    def run(path: Path, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        model = path.read_bytes()
        outputs = runtime.schema_fb.Model.GetRootAsModel(model, 0).Subgraphs(0).OutputsLength()
        interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 24)
        for i, array in enumerate(inputs):
            interpreter.set_input(array, i)
        interpreter.invoke()
        return [interpreter.get_output(i) for i in range(outputs)]

    return run


def litert(resolver: str) -> Runner:
    from ai_edge_litert import interpreter as litert

    def run(path: Path, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        kernels = getattr(litert.OpResolverType, resolver)
        interpreter = litert.Interpreter(str(path), experimental_op_resolver_type=kernels)
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    return run


RUNNERS: dict[str, Callable[[], Runner]] = {
    "openvino": openvino,
    "onnxruntime": onnxruntime,
    "tflm": tflm,
    "xnnpack": lambda: litert("AUTO"),
    "reference": lambda: litert("BUILTIN_REF"),
}


def main(tool: str, folder: Path, numbers: Sequence[str]) -> None:
    run = RUNNERS[tool]()
    for number in numbers:
        with np.load(folder / f"{number}.in.npz") as file:
            inputs = [file[f"arr_{i}"] for i in range(len(file.files))]
        try:
            found: Any = run(folder / f"{number}.tflite", inputs)
        except Exception as error:  # noqa: BLE001 - any of them is a refusal
            (folder / f"{number}.txt").write_text(f"{type(error).__name__}: {error}")
        else:
            np.savez(folder / f"{number}.out.npz", *[np.asarray(array) for array in found])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
