"""The process in which one tool runs models, or compiles them; it may die of one.

    PYTHON target_worker.py TOOL FOLDER TIMED FILE ...

Run as a script in the tool's own environment: of tflq it has one file, which imports nothing else. Of each model,
N.tflite for example, it reads inputs in N.in.npz, "RUN NAME" each, and writes outputs to N.npz, "RUN PLACE" each, or
N.txt with the reason why not. Runs follow each other: each begins with the state that the one before has left. With
TIMED above 0 it runs so many times more, and N.npz has "seconds", what the fastest took of the processor. Each tool has
one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

Inputs = Mapping[str, np.ndarray]
"""By name, in the model's order."""
Runner = Callable[[Inputs], Sequence[np.ndarray]]
Opener = Callable[[Path], Runner]


def by_name(names: Sequence[str], inputs: Inputs) -> dict[str, np.ndarray]:
    """Inputs by the names that a tool has for them: those of the model, or in its order others."""
    if set(names) <= set(inputs):
        return {name: inputs[name] for name in names}
    return dict(zip(names, inputs.values(), strict=True))


def of_onnx(runtime: str) -> Opener:
    """ONNX Runtime or OpenVINO, as `tflq verify --runtime` runs them. OpenVINO reads .tflite files itself, ONNX Runtime
    gets what tf2onnx makes of them."""
    import_module(runtime)  # or the process ends
    worker = of_verify()

    def opened(path: Path) -> Runner:
        made = by_tf2onnx(path) if runtime == "onnxruntime" and path.suffix == ".tflite" else path
        model = worker.OnnxModel(str(made), runtime)
        names = [name for name, *_ in model.head()["inputs"]]
        before = count()

        def run(inputs: Inputs) -> Sequence[np.ndarray]:
            found: list[np.ndarray] = model.run("", [*by_name(names, inputs).values()], {}, follows=next(before) > 0)
            return found

        return run

    return opened


def of_verify() -> Any:
    """The module of tflq that opens ONNX's runtimes and TFLite Micro; it imports nothing of tflq."""
    place = Path(__file__).resolve().parent.parent / "tflq" / "tools" / "verify" / "worker.py"
    spec = spec_from_file_location("worker", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_tf2onnx(path: Path) -> Path:
    """What tf2onnx makes of a .tflite file."""
    import tf2onnx

    made = path.with_suffix(".made.onnx")
    model, _ = tf2onnx.convert.from_tflite(str(path), opset=18)
    made.write_bytes(model.SerializeToString())
    return made


def tflm() -> Opener:
    """TFLite Micro, as `tflq verify --runtime` runs it."""
    import_module("tflite_micro")  # or the process ends
    worker = of_verify()

    def opened(path: Path) -> Runner:
        model = worker.MicroModel(str(path), max(1 << 24, 16 * path.stat().st_size), keep=False)
        before = count()

        def run(inputs: Inputs) -> Sequence[np.ndarray]:
            found: list[np.ndarray] = model.run("", [*inputs.values()], {}, follows=next(before) > 0)
            return found

        return run

    return opened


def litert(resolver: str) -> Opener:
    from ai_edge_litert import interpreter as litert

    def opened(path: Path) -> Runner:
        kernels = getattr(litert.OpResolverType, resolver)
        interpreter = litert.Interpreter(str(path), experimental_op_resolver_type=kernels, num_threads=1)
        interpreter.allocate_tensors()
        places = [detail["index"] for detail in interpreter.get_input_details()]
        results = [detail["index"] for detail in interpreter.get_output_details()]

        def run(inputs: Inputs) -> Sequence[np.ndarray]:
            for index, array in zip(places, inputs.values(), strict=True):
                interpreter.set_tensor(index, array)
            interpreter.invoke()
            return [interpreter.get_tensor(index) for index in results]

        return run

    return opened


def iree() -> Opener:
    """Text of MLIR, compiled for this CPU. IREE's integers have no sign."""
    from iree import compiler, runtime

    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
             "--iree-llvmcpu-target-cpu=host"]  # fmt: skip

    def opened(path: Path) -> Runner:
        context = runtime.SystemContext(config=runtime.Config("local-sync"))
        binary = compiler.compile_file(str(path), input_type="tosa", extra_args=flags)
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, binary))
        module = context.modules.module
        entry = module[next(name for name in module.vm_module.function_names if not name.startswith("__"))]

        def run(inputs: Inputs) -> Sequence[np.ndarray]:
            found = entry(*(a.view(np.int8) if a.dtype == np.uint8 else a for a in inputs.values()))
            return [array.to_host() for array in (found if isinstance(found, (tuple, list)) else [found])]

        return run

    return opened


def c() -> Opener:
    """A source with its header, as `tflq convert` writes them, compiled for this CPU."""
    import ctypes
    import os
    import re
    import subprocess

    types = {"int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16, "int32_t": np.int32, "float": np.float32}

    def opened(path: Path) -> Runner:
        text, library = path.read_text(), path.with_suffix(".so")
        flags = ["-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
        command = [os.environ.get("CC", "cc"), *flags, str(path), "-o", str(library), "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        name, parameters = re.findall(r"^int (\w+)_run\((.*)\);", text, re.MULTILINE)[0]
        numbers = {key: int(value) for key, value in re.findall(r"#define (\w+) (\d+)$", text, re.MULTILINE)}
        shapes = {key: [*map(int, value.split(","))] for key, value in re.findall(r"#define (\w+_SHAPE) {(.*)}", text)}
        opened_library, macro = ctypes.CDLL(str(library)), name.upper()
        arena = np.zeros(next(n for key, n in numbers.items() if key.endswith("ARENA_BYTES")) // 8 + 1, np.int64)
        state = np.zeros(next(n for key, n in numbers.items() if key.endswith("STATE_BYTES")) + 64, np.int8)
        if state_of := re.search(r"^void (\w+_init)\(", text, re.MULTILINE):
            getattr(opened_library, state_of[1])(ctypes.c_void_p(state.ctypes.data))
        outs = re.findall(r"(?<!const )(\w+) (out\d+)\[", parameters)

        def run(inputs: Inputs) -> Sequence[np.ndarray]:
            ready = [np.ascontiguousarray(array) for array in inputs.values()]
            results = [np.zeros(shapes[f"{macro}_{place.upper()}_SHAPE"], types[type]) for type, place in outs]
            arrays = [*ready, *results, *([state] if state_of else []), arena]
            if getattr(opened_library, f"{name}_run")(*(ctypes.c_void_p(array.ctypes.data) for array in arrays)):
                raise RuntimeError("the run ends with an error")
            return results

        return run

    return opened


def vela(accelerator: str) -> Opener:
    """Arm's compiler, which runs nothing: it takes a model if its file has one operator, the NPU's."""
    import subprocess

    from ethosu.vela.tflite.Model import Model

    program = Path(sys.executable).with_name("vela")

    def opened(path: Path) -> Runner:
        command = [str(program), "--accelerator-config", accelerator, "--output-dir", str(path.parent), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        made = path.with_name(f"{path.stem}_vela.tflite")
        if done.returncode or not made.exists():
            said = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line.lower()]
            raise RuntimeError((said or ["no file is written"])[0])
        model = Model.GetRootAs(made.read_bytes(), 0)
        codes = [model.OperatorCodes(i).CustomCode() for i in range(model.OperatorCodesLength())]
        graph = model.Subgraphs(0)
        ops = [codes[graph.Operators(i).OpcodeIndex()] for i in range(graph.OperatorsLength())]
        if ops != [b"ethos-u"]:
            raise RuntimeError(f"{sum(code != b'ethos-u' for code in ops)} of {len(ops)} operators are left to a CPU")
        return lambda _: []

    return opened


TOOLS: dict[str, Callable[[], Opener]] = {
    "openvino": lambda: of_onnx("openvino"),
    "onnxruntime": lambda: of_onnx("onnxruntime"),
    "tflm": tflm,
    "xnnpack": lambda: litert("AUTO"),
    "optimized": lambda: litert("BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    "reference": lambda: litert("BUILTIN_REF"),
    "iree": iree,
    "c": c,
    "ethos-u55": lambda: vela("ethos-u55-256"),
    "ethos-u65": lambda: vela("ethos-u65-512"),
    "ethos-u85": lambda: vela("ethos-u85-256"),
}


def results(opened: Opener, path: Path, timed: int) -> dict[str, Any]:
    """The arrays of N.npz."""
    with np.load(path.with_suffix(".in.npz")) as file:
        keys = [key.partition(" ") for key in file.files]
        runs: dict[str, dict[str, np.ndarray]] = {run: {} for run, _, _ in keys}
        for run, _, name in keys:
            runs[run][name] = file[f"{run} {name}"]
    runner = opened(path)
    found: dict[str, Any] = {}
    for number, inputs in runs.items():
        found |= {f"{number} {i}": np.asarray(array) for i, array in enumerate(runner(inputs))}
    if timed:
        found["seconds"] = min(seconds(runner, runs["0"]) for _ in range(timed))
    return found


def seconds(runner: Runner, inputs: Inputs) -> float:
    """What a run takes of the processor."""
    start = time.process_time()
    runner(inputs)
    return time.process_time() - start


def main(tool: str, folder: Path, timed: int, files: Sequence[str]) -> None:
    opened = TOOLS[tool]()
    for path in (folder / file for file in files):
        try:
            found = results(opened, path, timed)
        except Exception as error:  # noqa: BLE001 - any of them is a refusal
            path.with_suffix(".txt").write_text(f"{type(error).__name__}: {error}")
        else:
            np.savez(path.with_suffix(".npz"), **found)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
