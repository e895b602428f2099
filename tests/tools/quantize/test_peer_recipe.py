"""Recipes of ai-edge-quantizer and litert-quantizer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.base.errors import OptionError
from tflq.tools.quantize.peer_recipe import PeerRecipe, read_peer_recipe

WEIGHTS: dict[str, Any] = {"num_bits": 8, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
BYTES: dict[str, Any] = {"num_bits": 8, "symmetric": False, "granularity": "TENSORWISE", "dtype": "INT"}
STATIC: dict[str, Any] = {
    "activation_tensor_config": BYTES,
    "weight_tensor_config": WEIGHTS,
    "compute_precision": "INTEGER",
}
DYNAMIC: dict[str, Any] = {"weight_tensor_config": WEIGHTS, "compute_precision": "INTEGER"}
FEW = WEIGHTS | {"num_bits": 4}


def rule(regex: str = ".*", operation: str = "*", algorithm: str = "min_max_uniform_quantize", **config: Any) -> object:
    return {"regex": regex, "operation": operation, "algorithm_key": algorithm, "op_config": config}


def recipe(folder: Path, *rules: object) -> Path:
    path = folder / "recipe.json"
    path.write_text(json.dumps(rules))
    return path


def of(folder: Path, *rules: object) -> PeerRecipe:
    return read_peer_recipe(recipe(folder, *rules), net())


def test_the_last_rule_comes_first(tmp_path: Path) -> None:
    found = of(tmp_path, rule(**STATIC), rule("second", "FULLY_CONNECTED", "no_quantize"))
    assert found.scheme == "int8"
    assert found.rules == [
        {"name": "re:.*(?:second).*", "operator": "fully_connected", "scheme": "float"},
        {"name": "*", "scheme": "int8"},
        {"name": "*", "scheme": "float"},
    ]
    assert not found.warnings


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (DYNAMIC, {"scheme": "dynamic", "weights": "int8"}),
        ({"weight_tensor_config": FEW, "explicit_dequantize": True}, {"scheme": "weight-only", "weights": "int4"}),
        (
            {"weight_tensor_config": FEW | {"granularity": "BLOCKWISE_32"}, "compute_precision": "INTEGER"},
            {"scheme": "dynamic", "weights": "int4", "blocks": 32},
        ),
        ({"execution_mode": "DRQ", "weight_tensor_config": WEIGHTS}, {"scheme": "dynamic", "weights": "int8"}),
        (STATIC | {"activation_tensor_config": {"num_bits": 16}}, {"scheme": "int16x8"}),
    ],
)
def test_configurations(tmp_path: Path, config: dict[str, Any], settings: dict[str, Any]) -> None:
    """Weights alone are of operators that have them."""
    first, *_ = of(tmp_path, rule(**config)).rules
    assert {key: value for key, value in first.items() if key not in ("operator", "name")} == settings
    assert first.get("operator") == (None if settings["scheme"] == "int16x8" else "fully_connected")


@pytest.mark.parametrize(("algorithm", "method"), [("OCTAV", "octav"), ("MSE", "mse"), ("GPTQ", "gptq")])
def test_algorithms(tmp_path: Path, algorithm: str, method: str) -> None:
    for config in (DYNAMIC, STATIC):
        found = of(tmp_path, rule(".*", "*", algorithm, **config))
        assert found.rules[0]["weight_method"] == method
        assert "range" not in found.rules[0]
        assert not found.warnings
    assert of(tmp_path, rule(".*", "*", "float_casting", **DYNAMIC)).scheme == "float16"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (rule(".*", "*", "OSCAR", **DYNAMIC), "rule 1 has algorithm 'OSCAR', .*: minmax is taken"),
        (rule(".*", "INPUT", **DYNAMIC), "rule 1 has operation 'INPUT', .*: it is left out, see --io"),
        (rule(**DYNAMIC, skip_checks=True), "rule 1 has skip_checks = True, .*: it is ignored"),
        (rule(weight_tensor_config=WEIGHTS | {"granularity": "TENSORWISE"}), "granularity TENSORWISE"),
        (rule(**(STATIC | {"activation_tensor_config": BYTES | {"symmetric": True}})), "symmetric = True of 8 bits"),
    ],
)
def test_what_has_no_counterpart_is_named(tmp_path: Path, changed: object, what: str) -> None:
    found = of(tmp_path, rule(**DYNAMIC), changed)
    (warning,) = found.warnings
    assert re.search(what, warning)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"rules": []}, "not a list of rules"),
        ([{"regex": ".*"}], "operation"),
        ([rule(".*", "CONV_2D", **DYNAMIC)], "no rule of the recipe quantizes an operator of the network"),
        ([rule(**(STATIC | {"activation_tensor_config": {"num_bits": 4}}))], "activations of 4 bits"),
    ],
)
def test_what_is_no_recipe_is_refused(tmp_path: Path, content: object, what: str) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(content))
    with pytest.raises(OptionError, match=what):
        read_peer_recipe(path, net())


def test_a_network_is_quantized_by_it(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
    model, data = written(tmp_path, net()), list(samples(8))
    path = recipe(tmp_path, rule(**STATIC), rule("^second", algorithm="no_quantize"), rule("x", "INPUT", **STATIC))
    result = tflq.quantize(model, recipe=path, calibration=data)
    same = tflq.quantize(model, keep_float=["second"], calibration=data, range="minmax")
    assert tflq.write(result.module) == tflq.write(same.module)
    assert "operation 'INPUT'" in result.warnings[0]
    dynamic = tflq.quantize(model, recipe=recipe(tmp_path, rule("first", **DYNAMIC), rule("positive", **DYNAMIC)))
    assert dynamic.scheme == "dynamic"
    assert [row.tensor for row in dynamic.rows if row.quantized] == ["first"]
