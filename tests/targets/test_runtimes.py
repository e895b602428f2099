"""How `rules/runtimes` is measured: models of builtins, what is said of results, and the rows of TFLite itself."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tflq.dialects.tfl.arithmetic import Add
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, f32
from tflq.targets.target import KernelRules

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted((ROOT / "rules" / "runtimes").glob("*.toml"))


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in [name for name in sys.modules if name == "scripts" or name.startswith("scripts.")]:
        del sys.modules[name]


@pytest.fixture
def script() -> ModuleType:
    return import_module("scripts.measure_target")


@pytest.mark.slow
def test_each_trial_has_a_name_and_the_same_inputs_each_time(script: ModuleType) -> None:
    every, again = script.trials(), script.trials()
    assert [k for k, count in Counter(t.name for t in every if t.activation == "NONE").items() if count > 1] == []
    assert [t.model for t in every] == [t.model for t in again]
    for one, other in zip(every, again, strict=True):
        for x, y in zip(one.inputs, other.inputs, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        ([[1.0, 2.0]], "exact"),
        ([[1.0, 2.5]], "1 of 2 differ, by 0.5 at most"),
        ([[[1.0, 2.0]]], "other shapes: (1, 2)"),
        ([[1.0, 2.0], [1.0]], "other shapes: (2,), (1,)"),
        ("no kernel\nat all", "refused: no kernel at all"),
    ],
)
def test_what_is_said_of_results(script: ModuleType, got: Any, words: str) -> None:
    want = script.Outcome([[np.asarray([1.0, 2.0], np.float32)]], None)
    made = got if isinstance(got, str) else script.Outcome([[np.asarray(a, np.float32) for a in got]], None)
    assert script.judge(want, made) == words


def test_results_of_signless_integers_are_those_of_the_wanted_type(script: ModuleType) -> None:
    want = script.Outcome([[np.asarray([0, 200], np.uint8)]], None)
    made = script.Outcome([[np.asarray([0, -56], np.int8)]], None)
    assert script.differing(want, made, signless=True) == (0, 2, 0.0)
    assert script.differing(want, made) == (1, 2, 256.0)


def test_lines_say_what_was_exact(script: ModuleType) -> None:
    kernels = [
        script.Kernel("add", "f32 f32 -> f32", "NONE"),
        script.Kernel("add", "f32 f32 -> f32", "RELU6"),
        script.Kernel("add", "i32 i32 -> i32", "NONE"),
        script.Kernel("floor", "f32 -> f32", "NONE"),
        script.Kernel("mul", "f32 f32 -> f32", "RELU"),  # and not without
    ]
    assert script.rules(kernels) == [
        (
            'add = "f32 f32 -> f32; fused_activation_function = NONE RELU6 |'
            ' i32 i32 -> i32; fused_activation_function = NONE"'
        ),
        'floor = "f32 -> f32"',
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_tables_are_rules_that_name_their_tool(script: ModuleType, table: Path) -> None:
    assert {path.stem for path in TABLES} == {*script.MEASURED}
    assert all(package in table.read_text() for package in script.TOOLS[table.stem]["packages"])
    KernelRules(tomllib.loads(table.read_text())["builtins"], table.name).parse()


@pytest.mark.parametrize(("activation", "admitted"), [("NONE", True), ("RELU6", True), ("RELU_N1_TO_1", False)])
def test_rules_say_what_attributes_may_be(activation: str, admitted: bool) -> None:
    rules = KernelRules({"add": "T T -> T; T = f32 i32; fused_activation_function = NONE RELU6"}, "here")
    k, x = KernelBuilder(), Value(TensorType((2,), f32))
    k.emit(Add, [x, x], fused_activation_function=activation)
    assert rules.admit(k.ops[0]) is admitted


@pytest.mark.slow
def test_a_runtime_that_cannot_be_had_is_said(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = tmp_path / "nothing.whl"
    monkeypatch.setitem(script.TOOLS, "openvino", {"packages": [str(missing)]})
    monkeypatch.setattr(sys, "argv", ["measure_target.py", "openvino", "--environments", str(tmp_path)])
    assert script.main() == 2
    assert f"SKIPPED openvino: {missing} cannot be installed here: " in capsys.readouterr().err


@pytest.mark.slow
def test_tflite_itself_is_as_measured(script: ModuleType) -> None:
    """The default kernels of the interpreter that is installed, each model of them."""
    pytest.importorskip("ai_edge_litert")
    (package,) = script.TOOLS["xnnpack"]["packages"]
    if package != f"ai-edge-litert=={version('ai-edge-litert')}":
        pytest.skip(f"rules/runtimes/xnnpack.toml is of {package}")
    assert script.measured("xnnpack", Path(sys.executable)) == (ROOT / "rules/runtimes/xnnpack.toml").read_text()


def test_tflite_micro_is_as_measured(script: ModuleType) -> None:
    """Its builtins on plain tensors; quantized kernels take minutes."""
    pytest.importorskip("tflite_micro", reason="needs TFLite Micro: pip install '.[tflm]'")
    (package,) = script.TOOLS["tflm"]["packages"]
    if package != f"tflite-micro=={version('tflite-micro')}":
        pytest.skip(f"rules/runtimes/tflm.toml is of {package}")
    every = [*script.trials(), *script.edges(), *script.chains()]
    verdicts = script.compared("tflm", Path(sys.executable), every)
    judged = [(trial, verdict) for trial, verdict in zip(every, verdicts, strict=True) if verdict]
    refused = [f"{t.kernel}: {t.signature}" for t, verdict in zip(every, verdicts, strict=True) if not verdict]
    text = script.table("tflm", judged, refused)
    assert (ROOT / "rules/runtimes/tflm.toml").read_text().startswith(text)


def test_a_line_has_the_constraints_that_leave_what_is_exact(script: ModuleType) -> None:
    kernels = import_module("scripts.target_kernels")
    every = [kind for kind in kernels.kinds() if kind.kernel in ("sub", "concatenation", "gather", "abs")]
    bound, exact = "scale_ratio_below 524288", "exact"
    for kind in every:
        if kind.kernel == "sub" and "qi8" in kind.line:
            kind.outcomes = [(frozenset({bound}), exact)] * 5 + [(frozenset(), "refused: it dies")]
        elif kind.kernel == "concatenation" and "qi8" in kind.line:
            kind.outcomes = [(frozenset(), exact)] * 4
            kind.outcomes += [] if "*10" in kind.signature.text else [(frozenset(), "refused: too many")]
        elif kind.kernel == "gather" and "qi8" in kind.line:
            kind.outcomes = [(frozenset(), exact if kind.chosen == ("i32",) else "1 of 3 differ")] * 4
        elif kind.kernel == "abs":
            kind.outcomes = [(frozenset(), exact)] * 3  # too few
    lines, wrong = kernels.kernel_lines(every, exact)
    assert lines == [
        'concatenation = "qi8*10 -> qi8; positive_scale; no_activation; same_scale"',
        'gather = "qi8 i32 -> qi8; same_scale"',
        f'sub = "qi8 qi8 -> qi8; positive_scale; {bound}"',
    ]
    assert [text.rpartition(": ")[0].partition(":")[0] for text in wrong] == ["concatenation", "gather", "sub"]
    assert wrong[1].endswith("other numbers")


def test_targets_are_what_tables_have(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["measure_target.py", "targets", "--check"])
    assert script.main() == 0, capsys.readouterr().err
