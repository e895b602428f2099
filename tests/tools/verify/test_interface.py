"""Interfaces of two files, as the tflite package reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq.ir.module import Metadata, Module, Signature
from tflq.ir.ops import Buffer
from tflq.ir.types import UniformQuantizedType, i8
from tflq.tools.verify.interface import interface_differences
from tflq.tools.verify.model_file import ModelFile

Change = Callable[[Module], None]


def changed(models: Path, folder: Path, before: Change, after: Change) -> list[str]:
    """The differences of a model that is changed in one way from the same in another."""
    files = []
    for i, change in enumerate((before, after)):
        module = tflq.read(models / "cnn_int8.tflite")
        module.metadata = []
        change(module)
        files.append(
            ModelFile(str(folder / f"{i}.tflite")) if tflq.write(module, folder / f"{i}.tflite") == b"" else None
        )
    assert files[0] is not None
    assert files[1] is not None
    return interface_differences(files[0], files[1])


def nothing(_: Module) -> None:
    """Leaves a model as it is."""


def scale(module: Module) -> None:
    value = module.main.inputs[0]
    value.type = value.type.with_element(UniformQuantizedType.of(i8, 0.5, -1))


def output_name(module: Module) -> None:
    module.main.outputs[0].name = "other"


def no_signature(module: Module) -> None:
    module.signatures = None


def reset(module: Module) -> None:
    assert module.signatures
    module.signatures.append(Signature("tflq_reset", 0, [], []))


def noted(name: str, text: bytes) -> Change:
    def change(module: Module) -> None:
        module.metadata = [Metadata(name, Buffer(np.frombuffer(text, np.uint8)))]

    return change


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (nothing, scale, "input 'serving_default_image:0': scales are [0.5] instead of [0.00784"),
        (nothing, output_name, "outputs are 'other' instead of"),
        (nothing, no_signature, "signature 'serving_default' is missing"),
        (no_signature, nothing, "signature 'serving_default' is new"),
        (noted("author", b"me"), nothing, "metadata 'author' is missing"),
        (nothing, noted("author", b"me"), "metadata 'author' is new"),
        (noted("author", b"me"), noted("author", b"you"), "metadata 'author' is b'you' instead of b'me'"),
    ],
)
def test_a_difference_is_named(models: Path, tmp_path: Path, before: Change, after: Change, sentence: str) -> None:
    assert any(text.startswith(sentence) for text in changed(models, tmp_path, before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (nothing, nothing),
        (nothing, reset),
        (noted("min_runtime_version", b"1.5.0"), noted("min_runtime_version", b"2.17.0")),
        (nothing, noted("min_runtime_version", b"2.17.0")),
    ],
)
def test_what_a_conversion_may_add(models: Path, tmp_path: Path, before: Change, after: Change) -> None:
    assert changed(models, tmp_path, before, after) == []
