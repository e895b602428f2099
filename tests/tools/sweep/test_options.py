"""Every option of a conversion that changes its result is one of a sweep."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import get_args

import click
import pytest
from support.harness import argument, one_op
from support.sweeps import stable

import tflq
from tflq.base.errors import OptionError
from tflq.cli import convert, sweep
from tflq.cli.main import run
from tflq.cli.options import OF_ONE_MODEL
from tflq.formats.options import Fallback, Mac, Prefer, Semantics, State, changed, options_from_arguments
from tflq.ir.types import UniformQuantizedType, i8
from tflq.tools.sweep.baseline import options_of
from tflq.tools.sweep.store import read_results
from tflq.tools.sweep.sweeping import run_sweep
from tflq.tools.sweep.task import Result, Settings, Task, by_content

MODELS = Path(__file__).parents[3] / "models"
RESULT = {*(options_from_arguments.__kwdefaults__ or {}), "rules"} - {"cache", "choices", *OF_ONE_MODEL}
"""The keywords of `tflq.convert` that change the operators of a result, of any model."""


def swept(out: Path, cache: Path, *options: str) -> Result:
    command = ["sweep", str(MODELS / "cnn_int8.tflite"), "-o", str(out), "--seeds", "0", "--no-xnnpack"]
    assert run([*command, "--cache", str(cache), *options]) == 0
    return next(iter(read_results(out)))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sweeps of a model, with a cache in common: plain, and other with options."""
    folder = tmp_path_factory.mktemp("pair")
    swept(folder / "plain", folder / "cache")
    swept(folder / "other", folder / "cache", "--mac", "float32", "--prefer", "size")
    return folder


def test_convert_and_sweep_declare_the_same() -> None:
    declared = [
        {p.name: p.to_info_dict() for p in command.params if isinstance(p, click.Option)}
        for command in (convert.convert, sweep.sweep.commands["run"])
    ]
    for name in RESULT:
        assert declared[0][name] == declared[1][name]
    keywords = inspect.signature(run_sweep).parameters
    for name, default in (options_from_arguments.__kwdefaults__ or {}).items():
        assert name not in RESULT or keywords[name].default == default


@pytest.mark.parametrize(
    ("name", "choices"),
    [("mac", Mac), ("prefer", Prefer), ("fallback", Fallback), ("semantics", Semantics), ("state", State)],
)
def test_the_choices_are_those_of_the_library(name: str, choices: object) -> None:
    (option,) = [p for p in convert.convert.params if p.name == name]
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == get_args(choices)


def test_options_change_the_results_of_a_sweep(pair: Path) -> None:
    (plain,), (other,) = (list(read_results(pair / name)) for name in ("plain", "other"))
    assert plain["fingerprint"]["convert"] == {}
    assert other["fingerprint"]["convert"] == {"mac": "float32", "prefer": "size"}
    model = MODELS / "cnn_int8.tflite"
    assert plain["converted"]["bytes"] == len(tflq.convert(model).data)
    assert other["converted"]["bytes"] == len(tflq.convert(model, mac="float32", prefer="size").data)


def test_sweeps_with_other_options_share_no_verifications(pair: Path, tmp_path: Path) -> None:
    """Also where the bytes are the same."""
    same = swept(tmp_path / "same", pair / "cache")
    strict = swept(tmp_path / "strict", pair / "cache", "--fallback", "error")
    assert same["converted"] == strict["converted"]
    assert (same["cached"], strict["cached"]) == (["random"], [])


def test_cost_is_known_and_run_time_is_measured_anew(pair: Path, tmp_path: Path) -> None:
    (plain,) = read_results(pair / "plain")
    assert "run_time" not in plain
    assert plain["cost"]["arena"]["bytes"] > plain["cost"]["arena_in"]["bytes"] > 0
    for name in ("first", "second"):
        timed = swept(tmp_path / name, pair / "cache", "--time")
        assert timed["cached"] == []
        (time,) = timed["run_time"]
        assert not time["problem"]
        assert time["before"] > 0
        assert time["after"] > 0
        assert stable(timed)["verification"] == stable(plain)["verification"]


def test_a_baseline_is_of_the_same_options(pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline = pair / "other" / "baseline.json"
    assert options_of(baseline) == options_of(pair / "other")
    assert options_of(baseline) == {"kernel_set": "reference-2.3", "mac": "float32", "prefer": "size"}
    with pytest.raises(OptionError, match=r"--mac float32 \(now without --mac\), --prefer size \(now"):
        run_sweep(MODELS / "cnn_int8.tflite", tmp_path / "out", baseline=baseline)
    assert not (tmp_path / "out").exists()
    run(["sweep", "diff", str(pair / "plain"), str(baseline), "--json"])
    said = json.loads(capsys.readouterr().out)["options"]
    assert said == ["without --mac (now --mac float32)", "without --prefer (now --prefer size)"]


def test_models_are_compared_on_the_kernels_of_the_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = (argument((1, 256), UniformQuantizedType.of(i8, s, 0), n) for s, n in ((0.5, "x"), (0.75, "y")))
    (tmp_path / "in.tflite").write_bytes(one_op("tfl.leaky_relu", [x], [y], {"alpha": 0.3}))
    command = ["sweep", str(tmp_path / "in.tflite"), "--cache", str(tmp_path / "cache"), "-o"]
    for name, resolver in (("reference", "reference"), ("xnnpack", "default")):
        place = tmp_path / name
        assert run([*command, str(place), "--kernel-set", name]) == 0
        (result,) = read_results(place)
        assert result["status"] == "ok"  # and no recorded outputs of other kernels are its own
        assert result["verification"]["resolver"] == resolver
        assert options_of(place / "baseline.json")["kernel_set"] == result["fingerprint"]["kernel_set"] == f"{name}-2.3"
    capsys.readouterr()
    run(["sweep", "diff", str(tmp_path / "reference"), str(tmp_path / "xnnpack"), "--json"])
    said = json.loads(capsys.readouterr().out)["options"]
    assert said == ["--kernel-set reference-2.3 (now --kernel-set xnnpack-2.3)"]
    assert run([*command, str(tmp_path / "old"), "--kernel-set", "reference-1.0"]) == 0  # exact for others, too


def test_what_the_interpreter_cannot_tell_is_incomparable(tmp_path: Path) -> None:
    outcome = run_sweep(MODELS / "cnn_int8.tflite", tmp_path, kernel_set="reference-1.0", no_cache=True)
    (result,) = read_results(tmp_path)
    assert outcome.failed
    assert result["status"] == "incomparable"
    assert "the interpreter that is loaded is reference-2.3" in result["why"]


def test_rules_reach_every_model(models: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import tflq\nfrom tflq.dialects.tfl.convolution import Conv2D\n"
        "def fails(op, builder):\n    raise tflq.UnsupportedError('no')\n"
        "EXTENSION = tflq.Extension(rules={Conv2D: [fails]})\n"
    )
    outcome = run_sweep(models / "cnn_int8.tflite", tmp_path / "a", rules=[rules], no_cache=True)
    assert outcome.failed
    (result,) = read_results(tmp_path / "a")
    assert (result["status"], result["why"]) != ("ok", "")
    before = by_content({"rules": [str(rules)]})
    rules.write_text("import tflq\nEXTENSION = tflq.Extension()\n")
    assert by_content({"rules": [str(rules)]}) != before
    with pytest.raises(OptionError, match=r"rules\.py \(SHA-256"):
        run_sweep(models / "cnn_int8.tflite", tmp_path / "a", rules=[rules], no_cache=True, resume=True)


def test_an_open_batch_is_bound(tmp_path: Path) -> None:
    quantized = UniformQuantizedType.of(i8, 0.1, 3)
    x, y = argument((None, 4), quantized), argument((None, 4), quantized, "y")
    (tmp_path / "relu.tflite").write_bytes(one_op("tfl.relu", [x], [y], {}))
    targets = ["integer", "tosa"]
    assert not run_sweep(tmp_path / "relu.tflite", tmp_path / "out", no_cache=True, targets=targets, batch=3).failed
    results = list(read_results(tmp_path / "out"))
    assert [result["batch"] for result in results] == [3, 3]
    assert all(result["verification"]["outputs"][0]["elements"] % 12 == 0 for result in results)


def test_files_of_a_task_travel() -> None:
    task = Task("a", "integer", "a.tflite", inputs="a.npz", settings=Settings(convert={"rules": ["r.py", "s.py"]}))
    assert task.files == ("a.tflite", "a.npz", "r.py", "s.py")
    moved = task.moved(["1", "2", "3", "4"])
    assert (moved.path, moved.inputs, moved.settings.rules) == ("1", "2", ("3", "4"))
    plain = Task("a", "integer", "a.tflite")
    assert plain.moved(["1"]).files == ("1",)


def test_what_is_as_by_default_is_left_out() -> None:
    assert changed(mac="integer", batch=None, cut=[], shapes={}, rules=[], reset_signature=False) == {}
    assert changed(mac="float32", cut=["a"], reset_signature=True) == {
        "mac": "float32",
        "cut": ["a"],
        "reset_signature": True,
    }
