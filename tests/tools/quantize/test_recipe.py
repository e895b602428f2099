"""Recipes: which operators a rule is of, what becomes of them, and rules that fit nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import SIZE, dense, net, samples, written

import tflq
from tflq.base.errors import FileError, OptionError
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedType, f32
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.quantize.recipe import Choices, Settings, read_recipe
from tflq.tools.verify.verifying import verify

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
DEFAULT = Settings("int8")
MADE = ["first", "positive", "second", "y"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, net())


def recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text)
    return path


def quantized(model: Path, **options: Any) -> tflq.Quantization:
    options.setdefault("calibration", list(samples(50)))
    options.setdefault("range", "minmax")
    return tflq.quantize(model, model.with_name("quantized.tflite"), force=True, **options)


def scale_of(result: tflq.Quantization, name: str) -> float:
    (kind,) = [v.type.element for op in result.module.main.ops for v in op.results if v.name == name]
    assert isinstance(kind, UniformQuantizedType)
    return kind.scale


def storages(module: Any) -> list[tuple[str, str]]:
    return [(op.short_name, op.results[0].type.storage.name) for op in module.main.ops]


@pytest.mark.parametrize(
    ("rule", "fitting"),
    [
        ({"name": "*"}, MADE),
        ({"name": "re:first|y"}, ["first", "y"]),
        ({"operator": "fully_connected"}, ["first", "second"]),
        ({"from": "positive"}, ["second", "y"]),
        ({"to": "second"}, ["first", "positive", "second"]),
        ({"from": "first", "to": "second"}, ["positive", "second"]),
        ({"from": "x", "to": "y", "operator": "relu"}, ["positive"]),
        ({"name": "p?sitive", "operator": "relu"}, ["positive"]),
    ],
)
def test_which_operators_a_rule_is_of(rule: dict[str, str], fitting: list[str]) -> None:
    module = net()
    chosen = Choices(module, read_recipe([rule | {"scheme": "float"}], (), DEFAULT), DEFAULT)
    found = [op.results[0].name for op in module.main.ops if chosen.of(op.results).scheme == "float"]
    assert found == fitting


def test_the_first_rule_that_fits_wins_and_keep_float_is_before_them(model: Path, tmp_path: Path) -> None:
    path = recipe(
        tmp_path,
        '[[rule]]\nname = "second"\nscheme = "int16x8"\n[[rule]]\noperator = "fully_connected"\nscheme = "float"\n',
    )
    rows = {row.tensor: row for row in quantized(model, recipe=path).rows}
    assert not rows["positive"].quantized
    assert "i16" in rows["second"].types
    kept = {row.tensor for row in quantized(model, recipe=path, keep_float=["second"]).kept}
    assert kept == {"positive", "second"}


def test_an_operator_of_one_scale_that_stays_float_changes_no_number(tmp_path: Path) -> None:
    model = written(tmp_path, joined())
    before = quantized(model)
    whole = model.with_name("quantized.tflite").rename(tmp_path / "whole.tflite")
    for name in ("moved", "both", "all"):
        result = quantized(model, keep_float=[name])
        assert [row.tensor for row in result.kept] == [name]
        assert signal_to_noise(whole, tmp_path / "quantized.tflite", list(samples(30))) == float("inf"), name
    assert not before.kept


def joined() -> Module:
    """What is moved, and joined twice with others, of ranges of their own."""
    rng = np.random.default_rng(1)
    shapes = {"x": SIZE, "moved": SIZE, "second": SIZE, "both": 2 * SIZE, "third": SIZE, "all": 3 * SIZE, "y": 4}
    x, moved, second, both, third, all_, y = (Value(TensorType((1, n), f32), name) for name, n in shapes.items())
    whole = {"axis": 1, "fused_activation_function": "NONE"}
    shape = constant(np.array([1, SIZE], np.int32), name="shape")
    ops = [
        dense(np.eye(SIZE, dtype=np.float32) * 3, x, second, "second"),
        Op("tfl.reshape", [x, shape], [moved], {}),
        Op("tfl.concatenation", [moved, second], [both], dict(whole)),
        dense(rng.normal(size=(SIZE, SIZE)).astype(np.float32) / 9, x, third, "third"),
        Op("tfl.concatenation", [both, third], [all_], dict(whole)),
        dense(rng.normal(size=(4, 3 * SIZE)).astype(np.float32), all_, y, "y"),
    ]
    return Module([Function("main", [x], [y], ops)])


def test_an_operator_of_16_bits_stands_between_casts(model: Path) -> None:
    result = quantized(model, recipe=[{"name": "second", "scheme": "int16x8"}], io="int8")
    assert storages(result.module) == [
        ("fully_connected", "i8"),
        ("quantize", "i16"),
        ("fully_connected", "i16"),
        ("quantize", "i8"),
        ("tanh", "i8"),
    ]
    assert result.decibels is not None
    assert result.decibels > 30
    out = model.with_name("integer.tflite")
    tflq.convert(model.with_name("quantized.tflite"), out)
    assert verify(model.with_name("quantized.tflite"), out).equal


def test_an_operator_of_8_bits_in_a_network_of_16(model: Path) -> None:
    result = quantized(model, scheme="int16x8", recipe=[{"name": "second", "scheme": "int8"}])
    assert ("fully_connected", "i8") in storages(result.module)
    assert ("tanh", "i16") in storages(result.module)


@pytest.mark.parametrize("scheme", ["weight-only", "dynamic", "float16"])
def test_an_operator_with_fewer_bits_in_its_weights_alone(model: Path, scheme: str) -> None:
    result = quantized(model, recipe=[{"name": "second", "scheme": scheme}])
    assert [row.tensor for row in result.rows] == ["positive", "second", "y"]
    assert all(row.quantized for row in result.rows)
    (second,) = [op for op in result.module.main.ops if op.results[0].name == "second"]
    weights = second.operand(1)
    stored = weights if scheme == "dynamic" else weights.producer.operand(0)  # type: ignore[union-attr]
    assert stored.type.storage.name == ("f16" if scheme == "float16" else "i8")
    assert second.operand(0).type.storage.name == "f32"
    assert result.decibels is not None
    assert result.decibels > 30


def test_a_static_operator_in_a_network_of_weights_alone(model: Path) -> None:
    rule = {"name": "second", "scheme": "int8"}
    result = quantized(model, scheme="weight-only", recipe=[rule])
    rows = {row.tensor: row.types for row in result.rows}
    assert rows["first"] == "qi8"
    assert rows["second"].startswith("!quant")


def test_ranges_are_of_names(model: Path) -> None:
    seen = tflq.calibrate(model, list(samples(200))).statistics
    plain, other = (
        quantized(model, calibration=None, statistics=seen, recipe=rules)
        for rules in (None, [{"name": "second", "range": "percentile:80"}])
    )
    assert scale_of(other, "second") < 0.7 * scale_of(plain, "second")
    assert scale_of(other, "positive") == scale_of(plain, "positive")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('name = "secnd"\nscheme = "float"', "no operator makes a tensor 'secnd'; near are 'second'"),
        ('from = "ixx"\nscheme = "float"', "there is no tensor 'ixx'"),
        ('operator = "relu6"\nscheme = "float"', "the network has no operator 'relu6'; did you mean 'relu'"),
        (
            'name = "first"\noperator = "relu"\nscheme = "float"',
            "no operator fits name = 'first', operator = 'relu' at",
        ),
        ('name = "re:("\nscheme = "float"', "unterminated"),
        ('nam = "first"\nscheme = "float"', "'nam' is not a key of a rule; did you mean 'name'"),
        ('name = "first"', "asks for nothing"),
        ('scheme = "float"', "does not say of which operators"),
        ('name = "first"\nscheme = "int9"', "scheme='int9' is not known"),
        ('name = "first"\nscheme = 8', 'scheme = 8 is not a text; write it in quotes: scheme = "..."'),
        ('name = "first"\nrange = 5', 'range = 5 is not a text; write it in quotes: range = "..."'),
        ('name = "QQ"\nscheme = "float"', "no operator makes a tensor 'QQ'; `tflq inspect --tensors` lists the names"),
        ('name = "first"\nrange = "max"', "range 'max' is not known"),
        ('name = "first"\nweights = "int2"', "kernels of quantized activations take weights of 4 bits"),
        ('name = "first"\nscheme = "dynamic"\nblocks = 32', "int4 with dynamic: no runtime takes others"),
        ('name = "first"\nscheme = "dynamic"\nblocks = 33', "blocks=33 is not known"),
    ],
)
def test_faults_name_their_line(model: Path, tmp_path: Path, text: str, what: str) -> None:
    path = recipe(tmp_path, f'[[rule]]\nname = "y"\nscheme = "float"\n\n[[rule]]\n{text}\n')
    with pytest.raises(OptionError) as error:
        quantized(model, recipe=path)
    assert f"{path}:5" in str(error.value)
    assert what in str(error.value)


def test_tables_that_a_recipe_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="recipe=3: expected a file, or a list of its rules"):
        read_recipe(3, (), DEFAULT)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'rules' is not a table of a recipe"):
        read_recipe(recipe(tmp_path, "[[rules]]\n"), (), DEFAULT)
    with pytest.raises(OptionError, match="a recipe has a list of them"):
        read_recipe(recipe(tmp_path, '[rule]\nname = "x"\n'), (), DEFAULT)


def test_a_recipe_has_the_scheme_and_the_weights(tmp_path: Path) -> None:
    """The call that repeats the result gives neither."""
    model, path = written(tmp_path, net()), tmp_path / "recipe.toml"
    result = tflq.quantize(model, scheme="weight-only", weights="int4", weight_method="mse", save_recipe=path)
    assert path.read_text().startswith('scheme = "weight-only"\nweights = "int4"\nweight_method = "mse"\n')
    for options in ({}, {"scheme": "weight-only", "weights": "int4", "range": "auto"}):
        again = tflq.quantize(model, recipe=path, **options)  # type: ignore[arg-type]
        assert tflq.write(again.module) == tflq.write(result.module)
        assert (again.scheme, again.recipe) == ("weight-only", result.recipe)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"scheme": "int8"}, "scheme='int8' contradicts the recipe, by which scheme is 'weight-only'"),
        ({"weights": "int8"}, "weights='int8' contradicts the recipe, by which weights is 'int4'"),
        ({"blocks": 32}, "blocks=32 contradicts the recipe, by which blocks is 0"),
        ({"weight_method": "octav"}, "weight_method='octav' contradicts the recipe, by which weight_method is 'mse'"),
        ({"range": "ema"}, "range='ema' contradicts the recipe, by which range is 'minmax'"),
    ],
)
def test_what_a_recipe_says_of_the_whole_network_no_option_contradicts(
    options: dict[str, Any], what: str, tmp_path: Path
) -> None:
    text = 'range = "minmax"\nscheme = "weight-only"\nweights = "int4"\nweight_method = "mse"\n'
    with pytest.raises(OptionError, match=f"{what}; leave out one of them"):
        tflq.quantize(written(tmp_path, net()), recipe=recipe(tmp_path, text), **options)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('scheme = "int9"', "scheme='int9' is not known"),
        ('scheme = "float"', "scheme='float' is not known"),
        ("scheme = 8", "scheme is 8, not a text"),
        ('range = "mse"\nweights = "int2"', "weights of 4 bits at least, not int2; take int4"),
        ('scheme = "dynamic"\nblocks = 7', "blocks=7 is not known"),
    ],
)
def test_settings_of_the_whole_network_are_checked(tmp_path: Path, text: str, what: str) -> None:
    path = recipe(tmp_path, text)
    with pytest.raises(OptionError, match=what) as error:
        tflq.quantize(written(tmp_path, net()), recipe=path, calibration=list(samples(2)))
    assert f"{path}:{text.count(chr(10)) + 1}" in str(error.value)


def test_the_result_and_its_recipe_are_both_written_or_neither(tmp_path: Path) -> None:
    model, out, recipe = written(tmp_path, net()), tmp_path / "out.tflite", tmp_path / "recipe.toml"

    class Overtaken:
        """Samples during which another file takes the recipe's place."""

        def __iter__(self) -> Iterator[np.ndarray]:
            recipe.write_text("other")
            yield from samples(2)

    with pytest.raises(FileError):
        tflq.quantize(model, out, calibration=Overtaken(), save_recipe=recipe)
    assert recipe.read_text() == "other"
    assert not out.exists()
    result = tflq.quantize(model, out, calibration=list(samples(2)), save_recipe=recipe, force=True)
    assert recipe.read_text() == result.recipe
    assert out.read_bytes() == tflq.write(result.module)
