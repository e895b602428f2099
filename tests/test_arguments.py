"""What a call is given that is not of the kind it takes: an OptionError says what is expected."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq

CONVERT: list[tuple[dict[str, Any], str]] = [
    ({"cut": "conv1"}, "cut='conv1': expected a list of tensor names; write cut=['conv1']"),
    ({"cut": None}, "cut=None: expected a list of tensor names; leave it out for none"),
    ({"cut": [3]}, "cut[0]=3: expected a list of tensor names"),
    ({"rules": tflq.Extension()}, "expected a list of extensions (tflq.Extension) and Python files; write rules=["),
    ({"rules": "mine.py"}, "rules='mine.py': expected a list of extensions"),
    ({"rules": None}, "rules=None: expected a list of extensions"),
    ({"mac": None}, "mac=None is not known; known are integer, float32"),
    ({"mac": "flaot32"}, "mac='flaot32' is not known; did you mean 'float32'? known are integer, float32"),
    ({"fallback": True}, "fallback=True is not known; known are float, error"),
    ({"format": "tosaa"}, "format='tosaa' is not known; did you mean 'tosa'? known are"),
    ({"target": 3}, "target=3: expected the name of a target, or the path of a target's file"),
    ({"target": "kernel"}, "did you mean 'kernels'?"),
    ({"batch": "4"}, "batch='4': expected a whole number, 1 or more"),
    ({"batch": 1.5}, "batch=1.5: expected a whole number"),
    ({"batch": 0}, "batch=0 makes no sense; give 1 or more"),
    ({"shapes": [1, 2]}, "shapes=[1, 2]: expected shapes by input name, such as {'image': (1, 224, 224, 3)}"),
    ({"shapes": {"x": 3}}, "shapes['x']=3: expected a sequence of whole numbers"),
    ({"shapes": {"x": "1,2"}}, "shapes['x']='1,2': expected a sequence of whole numbers"),
    ({"signature": 1}, "signature=1: expected a signature's key"),
    ({"cache": 1}, "cache=1: expected a path"),
    ({"force": None}, "force=None: expected True or False"),
    ({"reset_signature": "no"}, "reset_signature='no': expected True or False"),
    ({"destination": 3}, "destination=3: expected a path"),
]
VERIFY: list[tuple[dict[str, Any], str]] = [
    ({"seeds": None}, "seeds=None: expected a whole number, 0 or more"),
    ({"max_lsb": "1"}, "max_lsb='1': expected a number, 0 or more"),
    ({"resolver": "xnnpack"}, "resolver='xnnpack' is not known; known are reference, optimized, default"),
    ({"inputs": [np.zeros(3)]}, "input 'x' has the shape (2, 2), and the sample of place 0 (3,)"),
    ({"layers": "yes"}, "layers='yes': expected True or False"),
    ({"report": 3}, "report=3: expected the report of a conversion"),
    ({"a": None}, "a=None: expected a model: a path, bytes, or a file opened for reading bytes"),
]
REST: list[tuple[Callable[[str], object], str]] = [
    (lambda _: tflq.read(None), "source=None: expected a model: a path, bytes"),  # type: ignore[arg-type]
    (lambda m: tflq.convert(tflq.read(m)), "expected a model: a path, bytes"),  # type: ignore[arg-type]
    (lambda m: tflq.read(io.StringIO(m)), "expected a file opened for reading bytes; open(path, 'rb')"),  # type: ignore[arg-type]
    (lambda m: tflq.inspect(m, target="moon"), "target 'moon' is not known"),
    (lambda m: tflq.bisect(m, seeds="1"), "seeds='1': expected a whole number"),  # type: ignore[arg-type]
    (lambda m: tflq.reduce(m, mac="int"), "mac='int' is not known; did you mean 'integer'?"),  # type: ignore[arg-type]
]


@pytest.fixture
def model(models: Path) -> str:
    return str(models / "pad.tflite")


@pytest.mark.parametrize(("options", "message"), CONVERT)
def test_of_convert(options: dict[str, Any], message: str, model: str) -> None:
    with pytest.raises(tflq.OptionError) as caught:
        tflq.convert(model, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(("options", "message"), VERIFY)
def test_of_verify(options: dict[str, Any], message: str, model: str) -> None:
    with pytest.raises(tflq.OptionError) as caught:
        tflq.verify(**{"a": model, "b": model} | options)
    assert message in str(caught.value)


@pytest.mark.parametrize(("call", "message"), REST)
def test_of_other_calls(call: Callable[[str], object], message: str, model: str) -> None:
    with pytest.raises(tflq.OptionError) as caught:
        call(model)
    assert message in str(caught.value)


def test_what_is_like_a_number_or_a_list_is_one(model: str) -> None:
    main = tflq.read(model).main
    shapes = {main.inputs[0].name: np.array(main.inputs[0].type.shape)}
    options: dict[str, Any] = {"cut": iter([main.outputs[0].name]), "shapes": shapes, "reset_signature": np.False_}
    assert tflq.convert(model, **options).data
