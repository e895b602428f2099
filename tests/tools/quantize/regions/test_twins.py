"""Float networks with the parameters of their quantized twins become the twins (scripts/quantized_twins.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import CORPUS, needs_corpus

import tflq
from scripts.quantized_twins import PAIRS, TARGET, rebuilt
from tflq.formats.tflite.writer import write
from tflq.ir.text.print_types import type_text
from tflq.ir.types import BareType
from tflq.tools.opt import parse_pipeline

pytestmark = needs_corpus

FIGURES = {
    "pretrainedResnet_large_int8.tflite": (24, 31, 55),
    "vww_96_int8.tflite": (57, 61, 118),
    "model_ToyCar_quant_fullint.tflite": (21, 19, 40),
    "model_ToyCar_quant_fullint_micro_intio.tflite": (21, 19, 40),
}
"""Ports annotated, propagated, and in all."""

DIFFERENCES = {
    # A channel of weights of 1e-34, whose scale the converter widened until the bias fits. It kept the scale of the
    # bias, and divided for that of the weights, of which the file has 24 bits: their product is another by one bit.
    # The converter of vww_96 multiplied.
    "pretrainedResnet_large_int8.tflite": ["operator 8 conv_2d, port 2: 1 of 160 scales differ: "],
}


@pytest.mark.parametrize(("real", "twin"), PAIRS)
def test_a_float_network_becomes_its_twin(real: str, twin: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    paths = [_path(name) for name in (real, twin)]
    made = rebuilt(*paths)
    assert (made.annotated, made.propagated, made.ports) == FIGURES[twin]
    assert made.full
    expected = DIFFERENCES.get(twin, [])
    assert len(made.differences) == len(expected)
    assert all(line.startswith(start) for line, start in zip(made.differences, expected, strict=True))
    result = tflq.verify(paths[1], bytes(write(made.module)))
    assert result.outputs
    assert all(difference.equal for difference in result.outputs.values())


def test_the_parameters_can_come_from_a_file_of_annotations(tmp_path: Path) -> None:
    real, twin = _path("model_ToyCar.tflite"), _path("model_ToyCar_quant_fullint.tflite")
    kernels = [op for op in tflq.read(twin).main.ops if op.name == "tfl.fully_connected"]
    pairs = zip(tflq.read(real).main.ops, kernels, strict=True)
    types = {
        value.name: type_text(BareType.of(other.type.element))
        for op, op_of_twin in pairs
        for value, other in zip((*op.operands, *op.results), (*op_of_twin.operands, *op_of_twin.results), strict=True)
        if value is not None and other is not None and other.type.storage.name == "i8"
    }
    annotations, target = tmp_path / "tensors.toml", tmp_path / "int8.toml"
    annotations.write_text("[tensors]\n" + "".join(f'"{name}" = "{text}"\n' for name, text in types.items()))
    target.write_text(TARGET)
    propagate = f"quant-propagate{{target={target} annotations={annotations}}}"
    made = parse_pipeline(f"kernel-fusion,{propagate},quant-materialize{{casts=tfl}},dce").run(tflq.read(real)).module
    assert bytes(write(made)) == bytes(write(rebuilt(real, twin).module))


def _path(name: str) -> Path:
    found = sorted(CORPUS.rglob(name))
    if not found:
        pytest.skip(f"the corpus has no {name}")
    return found[0]
