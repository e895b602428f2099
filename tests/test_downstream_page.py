"""What tools downstream make of networks: how it is measured, that the tools that are installed here make the same, and
what README.md says of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

from scripts import downstream
from scripts.downstream_forms import FORMS, ORIGINAL, TOOLS, Row, Tool
from scripts.marked import marked
from scripts.pages.downstream import DATA, README, SKIPPED, Measurement, advice, cells, dump, load, page_of
from scripts.target_running import Difference, packages

MEASURED = load(DATA.read_text(encoding="utf-8"))
PLAIN = Tool("a tool", "tflm", "tflm", (ORIGINAL, "`integer`"))


def row(form: str, wrong: int, seconds: float = 1e-3, refused: str = "") -> Row:
    found = None if refused else Difference(wrong, 50, float(wrong > 0))
    return Row(PLAIN, form, "net", refused, found, None if refused else seconds, 2000)


def installed(tool: Tool) -> bool:
    """Whether this environment has what the page was measured with."""
    needed = packages(tool.environment)[:1]  # what else is listed makes files for it
    try:
        return all(f"{p.partition('==')[0]}=={version(p.partition('==')[0])}" == p for p in needed)
    except PackageNotFoundError:
        return False


def test_each_form_is_given_to_a_tool_and_each_tool_knows_its_forms() -> None:
    assert {form for tool in TOOLS for form in tool.forms} == FORMS.keys()
    assert len({tool.title for tool in TOOLS}) == len(TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.title)
def test_all_forms_of_a_tool_are_measured(tool: Tool) -> None:
    rows = [(row.network, row.form) for row in MEASURED.rows if row.tool == tool]
    assert sorted(rows) == sorted((name, form) for name in MEASURED.networks for form in tool.forms)
    assert f"\n## {tool.title}\n\n{', '.join(packages(tool.environment))}\n" in page_of(MEASURED, [tool])


def test_a_measurement_is_written_as_it_is() -> None:
    assert load(dump(MEASURED)) == MEASURED
    assert DATA.read_text(encoding="utf-8") == dump(MEASURED)


def test_the_readme_says_what_was_measured() -> None:
    assert marked(README.read_text(encoding="utf-8"), "downstream") == advice(MEASURED, TOOLS)


@pytest.mark.slow
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if not tool.compiles], ids=lambda tool: tool.title)
def test_it_is_what_tools_make_of_a_network(tool: Tool, models: Path) -> None:
    """But for times."""
    if not installed(tool):
        pytest.skip(f"measured with {packages(tool.environment)[0]}")
    forms = [f for f in tool.forms if tool.environment != "onnxruntime" or FORMS[f].suffix == ".onnx"]  # no tf2onnx
    chosen = downstream.networks([models / "cnn_int8.tflite", models / "cnn_uint8.tflite", models / "pad.tflite"])
    assert [network.path.stem for network in chosen] == ["cnn_int8", "cnn_uint8"]
    rows = list(downstream.measured(chosen, [tool], {tool.environment: Path(sys.executable)}, forms))
    assert len(rows) == len(chosen) * len(forms)
    known = [(*first, size) for *first, _, size in map(cells, MEASURED.rows)]
    for *first, _, size in map(cells, rows):
        assert (*first, size) in known


def test_what_is_said_of_a_row() -> None:
    assert cells(row("`integer`", 0)) == ("net", "`integer`", "yes", "yes", "0", "1.00", "2.0")
    assert cells(row("`integer`", 3))[2:5] == ("yes", "3 of 50 differ", "1")
    assert cells(row("`integer`", 0, refused="no | kernel"))[2:] == ("no: no / kernel", "", "", "", "2.0")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([row(ORIGINAL, 3), row("`integer`", 0, 2e-3)], "| a tool | `integer` | 1 exact | 0 exact |"),
        ([row(ORIGINAL, 0), row("`integer`", 0, 2e-3)], "| a tool | the original | 1 exact | 1 exact |"),
        ([row(ORIGINAL, 0, refused="no"), row("`integer`", 0)], "| a tool | `integer` | 1 exact | 0 exact |"),
    ],
)
def test_the_form_with_most_exact_results_is_advised_and_then_the_fastest(rows: Sequence[Row], line: str) -> None:
    assert advice(Measurement(["net"], rows), [PLAIN]).splitlines()[2:] == [line]


def test_a_tool_that_was_skipped_is_said_and_not_advised() -> None:
    nothing = Measurement(["net"], [])
    assert f"| a tool | {SKIPPED} |" in page_of(nothing, [PLAIN])
    assert len(advice(nothing, [PLAIN]).splitlines()) == 2


def test_a_tool_refuses_and_others_go_on(models: Path) -> None:
    """The original of a file that the interpreter cannot read, then one that it can."""
    from scripts.target_running import REFERENCE, Job, Outcome, outcomes

    pytest.importorskip("ai_edge_litert")
    (network,) = downstream.networks([models / "cnn_int8.tflite"])
    jobs = [Job(b"nothing", ".tflite", network.inputs), Job(network.path.read_bytes(), ".tflite", network.inputs)]
    refused, made = outcomes(REFERENCE, Path(sys.executable), jobs, timed=1)
    assert isinstance(refused, str)
    assert isinstance(made, Outcome)
    assert made.seconds
    for want, got in zip(network.want.runs, made.runs, strict=True):
        np.testing.assert_array_equal(want, got)
