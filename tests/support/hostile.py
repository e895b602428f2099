"""Small files that state much: huge dims, windows, strides and counts, scales from denormal to the greatest, constants
to fold. Each is converted within bounds of time and memory, or refused.

A draw begins as a sample of the coverage table, so that every operator is drawn.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
)
from tflq.tools.coverage.table import operators, samples_of
from tflq.transforms.shape_inference import Inference

SECONDS: Final = 10
MEMORY: Final = 500 << 20
MOST_BYTES: Final = 100_000

FORMS: Final[dict[str, dict[str, Any]]] = {
    "integer": {},
    "kernels": {"target": "kernels"},
    "float32": {"mac": "float32"},
    "portable": {"target": "portable"},
    "tflm": {"target": "tflm"},
    "tosa": {"format": "tosa"},
    "onnx": {"format": "onnx"},
    "qdq": {"format": "qdq"},
    "size": {"prefer": "size"},
    "memory": {"prefer": "memory"},
    "real": {"semantics": "real"},
    "real_tosa": {"semantics": "real", "format": "tosa"},
    "real_onnx": {"semantics": "real", "format": "onnx"},
}
HUGE: Final = (1 << 30, 1 << 30, (1 << 31) - 1, 1 << 26, 1 << 24, 1 << 20, 1 << 16, 4097, 255)
SCALES: Final = (
    1e-45,
    1e-42,
    1.2e-38,
    1e-30,
    1e-20,
    1e-10,
    1e-7,
    3e-5,
    0.9999999,
    1.0,
    7.3,
    1e5,
    1e10,
    1e20,
    1e30,
    3e38,
)


@cache
def samples(operator: str) -> tuple[bytes, ...]:
    """The files of an operator that are valid."""
    return tuple(model for _, model in samples_of(operator) if _is_valid(model))


def _is_valid(model: bytes) -> bool:
    with suppress(tflq.TflqError):
        return bool(tflq.read(model).main.ops)
    return False


def drawn(number: int, seed: int = 0) -> tuple[str, bytes]:
    """The operator, and the file, of one draw; the same in every run."""
    rng = np.random.default_rng([seed, number])
    names = operators()
    while not samples(name := names[rng.integers(len(names))]):
        pass
    module = tflq.read(samples(name)[rng.integers(len(samples(name)))])
    wanted = rng.random(5) < (0.6, 0.4, 0.3, 0.5, 0.2)
    for twist, chosen in zip((_dims, _numbers, _attributes, _scales, _folded), wanted, strict=True):
        if chosen:
            twist(rng, module)
    _settled(module)
    try:
        return name, bytes(write(module))
    except (tflq.TflqError, ArithmeticError, ValueError):  # no file can say so
        return name, samples(name)[0]


def _one(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _dims(rng: np.random.Generator, module: Module) -> None:
    """A dim of an input, or of all, is huge."""
    size = _one(rng, HUGE)
    inputs = [v for v in module.main.inputs if v.type.shape]
    dim = int(rng.integers(4))
    for value in inputs if rng.random() < 0.5 else inputs[:1]:
        dims = list(value.type.dims)
        if isinstance(value.type.element, UniformQuantizedPerAxisType) and value.type.element.axis == dim % len(dims):
            continue
        dims[dim % len(dims)] = size
        value.type = TensorType(tuple(dims), value.type.element)


def _numbers(rng: np.random.Generator, module: Module) -> None:
    """A number of a constant of plain integers is huge, or the product of all others and it."""
    found = [
        v
        for op in module.main.ops
        for v in op.present_operands
        if v.is_constant and not v.type.quantized and v.type.storage.is_integer and v.type.storage.bits >= 32
    ]
    if found:
        value = _one(rng, found)
        array = value.array.copy().reshape(-1)
        if array.size:
            array[rng.integers(array.size)] = _one(rng, HUGE)
            value.buffer, value._array = Buffer.of(array), None


def _attributes(rng: np.random.Generator, module: Module) -> None:
    """Some integers among the options are huge."""
    op = _one(rng, module.main.ops)
    names = [k for k, v in op.attributes.items() if isinstance(v, int) and not isinstance(v, bool)]
    for name in names:
        if rng.random() < 0.5:
            op.attributes[name] = _one(rng, HUGE)


def _scales(rng: np.random.Generator, module: Module) -> None:
    """Scales of some tensors are extreme."""
    values = dict.fromkeys(v for op in module.main.ops for v in op.tensors)
    common = _one(rng, SCALES) if rng.random() < 0.3 else None
    for value in values:
        element = value.type.element
        if not isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)) or rng.random() < 0.4:
            continue
        scale = common or _one(rng, SCALES) * (1 if rng.random() < 0.3 else rng.uniform(0.5, 2))
        scale = float(np.float32(min(scale, 3.4e38)))
        if isinstance(element, UniformQuantizedType):
            value.type = TensorType(value.type.shape, element.replace(scale=scale))
        else:
            scales = np.full(element.scales.shape, np.float32(scale))
            kind = UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, element.zero_points)
            value.type = TensorType(value.type.shape, kind)


def _folded(rng: np.random.Generator, module: Module) -> None:
    """Inputs are constants."""
    main = module.main
    small = [v for v in main.inputs if v.type.is_static and math.prod(v.type.sizes) <= 4096 and v.type.storage.numpy]
    for value in small[: int(rng.integers(len(small) + 1))]:
        main.inputs = [v for v in main.inputs if v is not value]
        storage = value.type.storage
        array = np.ones(value.type.sizes, storage.dtype)
        value.buffer = Buffer.of(array, storage)
        if module.signatures:
            module.signatures = None


def _settled(module: Module) -> None:
    """Results have the shapes that follow, where some do."""
    with suppress(tflq.TflqError, ArithmeticError, ValueError, IndexError):
        for value, shape in Inference(module, {}).shapes.items():
            if shape is not None and None not in shape and all((d or 0) < 1 << 31 for d in shape) and value.producer:
                value.type = TensorType(shape, value.type.element)


def any_draw(number: int, seed: int = 0) -> tuple[str, bytes]:
    """Every fourth is of `layers`."""
    return (layers if number % 4 == 3 else drawn)(number, seed)


@dataclass(frozen=True)
class Cost:
    """What one conversion took: seconds of the processor. `outcome`: "converted", "refused", or what went wrong."""

    outcome: str
    seconds: float
    number: int = -1
    operator: str = ""
    form: str = ""

    @property
    def excessive(self) -> bool:
        return self.outcome not in ("converted", "refused")


class OutOfTime(BaseException):
    """A conversion that is not ended by `except Exception`."""


def cost(model: bytes, form: str) -> Cost:
    """What a conversion takes. It is ended after twice the bound, and gets no more memory than the bound."""

    def late(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGPROF, late)
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + MEMORY, limit[1]))
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
    try:
        outcome = _outcome(lambda: tflq.convert(model, **FORMS[form]))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, limit)
    seconds = time.process_time() - started
    if outcome in ("converted", "refused") and seconds > SECONDS:
        outcome = f"{seconds:.1f} s"
    return Cost(outcome, seconds)


def _outcome(convert: Callable[[], object]) -> str:
    try:
        convert()
    except tflq.TflqError:
        return "refused"
    except MemoryError:
        return "memory"
    except OutOfTime:
        return "time"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return f"{type(error).__name__}: {error}"[:200]
    return "converted"


def _mapped() -> int:
    """The address space of the process in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def layers(number: int, seed: int = 0) -> tuple[str, bytes]:
    """As `drawn`: a layer of up to 2,000 channels, each of its own scale, around an extreme one."""
    rng = np.random.default_rng([seed, number, 1])
    channels = int(_one(rng, (64, 64, 256, 256, 700, 700, 2000)))
    storage = _one(rng, (i8, i8, i16))
    kind = _one(rng, ("conv_2d", "depthwise_conv_2d", "fully_connected"))
    spread = float(_one(rng, (1, 1, 4, 1e3)))
    middle, x_scale, out_scale = (float(_one(rng, (*SCALES, 0.1, 0.01, 0.003))) for _ in range(3))
    scales = np.clip(middle * spread ** rng.uniform(-1, 1, channels), 1e-45, 3e38).astype(np.float32)
    shape, axis = {
        "conv_2d": ((channels, 1, 1, 1), 0),
        "depthwise_conv_2d": ((1, 1, 1, channels), 3),
        "fully_connected": ((channels, 1), 0),
    }[kind]
    inputs = channels if kind == "depthwise_conv_2d" else 1
    image = kind != "fully_connected"
    x = Value(TensorType((1, 2, 2, inputs) if image else (2, inputs), _uniform(storage, x_scale)), "x")
    y = Value(TensorType((1, 2, 2, channels) if image else (2, channels), _uniform(storage, out_scale)), "y")
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    w = Value(TensorType(shape, UniformQuantizedPerAxisType.of(i8, axis, scales, 0)), "w", buffer=Buffer.of(weights))
    with np.errstate(all="ignore"):
        products = np.clip(np.float32(x_scale) * scales, 0, 3e38).astype(np.float32)
    wide = i32 if storage is i8 else i64
    bias = rng.integers(-(1 << 30), 1 << 30, channels).astype(wide.dtype)
    b = Value(
        TensorType((channels,), UniformQuantizedPerAxisType.of(wide, 0, products, 0)), "b", buffer=Buffer.of(bias)
    )
    op = Op(f"tfl.{kind}", [x, w, b], [y], dict(_OPTIONS[kind]))
    return kind, bytes(write(Module([Function("main", [x], [y], [op])])))


_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "conv_2d": {"padding": "VALID", "stride_h": 1, "stride_w": 1},
    "depthwise_conv_2d": {"padding": "VALID", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1},
    "fully_connected": {},
}


def _uniform(storage: ScalarType, scale: float) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, float(np.float32(scale)), 0)


def in_child(numbers: range, seed: int = 0, *, all_forms: bool = False) -> Iterator[Cost]:
    """The costs of draws, each in one form or in all, in a child process. One that dies is replaced, and what it was
    at has failed."""
    start = numbers.start
    while start < numbers.stop:
        job = json.dumps([start, numbers.stop, seed, all_forms])
        command = [sys.executable, "-c", _CHILD, *map(str, (ROOT, ROOT / "tests")), job]
        at: Cost | None = None
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout or ():
                at = Cost(**json.loads(line))
                if at.outcome:
                    yield at
        if child.returncode == 0:
            return
        if at is None:
            raise RuntimeError(f"the child ended with {child.returncode} before its first draw")
        yield replace(at, outcome=f"the process ended with {child.returncode}")
        start = at.number + 1


ROOT: Final = Path(__file__).resolve().parents[2]
_CHILD: Final = "import sys; sys.path[:0] = sys.argv[1:3]; from support.hostile import work; work(sys.argv[3])"


def work(job: str) -> None:
    """The child: a line of JSON before and after each conversion."""
    start, stop, seed, all_forms = json.loads(job)
    for form in FORMS.values():  # what is imported counts for no draw
        tflq.convert(samples("add")[0], **form)
    names = list(FORMS)
    for number in range(start, stop):
        operator, model = any_draw(number, seed)
        for form_ in names if all_forms else [names[number % len(names)]]:
            known = Cost("", 0.0, number, operator, form_)
            _put(known)
            found = cost(model, form_)
            _put(replace(known, outcome=found.outcome, seconds=found.seconds))


def _put(record: Cost) -> None:
    sys.stdout.write(json.dumps(record.__dict__) + "\n")
    sys.stdout.flush()
