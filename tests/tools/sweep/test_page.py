"""The page of a sweep, as text."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.made_results import differing, made, passing, refused

from tflq.cli.main import run
from tflq.tools.sweep import page
from tflq.tools.sweep.baseline import compare, entry_of, write_baseline
from tflq.tools.sweep.page import Summary
from tflq.tools.sweep.task import Result


def written(results: Iterable[Result], path: Path, **more: Any) -> str:
    page.write(results, path, **more)
    return path.read_text("utf-8")


def lines_of(text: str) -> list[Any]:
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    return [json.loads(line) for line in data[1].strip().split("\n")]


def test_every_result_is_a_row_with_details(tmp_path: Path) -> None:
    text = written([passing(1), differing("nets/off")], tmp_path / "index.html")
    row, details, other, _ = lines_of(text)
    assert row[:4] == ["nets/net_0001", "integer", "ok", True]
    assert other[:4] == ["nets/off", "integer", "differs", False]
    assert details["operators"]["paths"]["TANH"] == {"float": 1}
    assert "1 of 2 not as expected" in text
    assert "tflq <strong>2.0.0</strong>" in text


def test_what_a_merge_misses_stands_in_front(tmp_path: Path) -> None:
    known = Summary(missing=[("nets/gone", "integer")], incomplete=["part 2 of 3 is not given"])
    text = written([passing(1)], tmp_path / "index.html", known=known)
    assert '<span class="verdict bad">1 of 2 missing</span>' in text
    assert "1 ×</strong> no result: gone [integer]</li>" in text
    assert "<li>part 2 of 3 is not given</li>" in text
    assert '<span class="verdict good">all as expected</span>' in written([passing(1)], tmp_path / "index.html")


def test_cost_is_before_after_and_how_many_times_as_much(tmp_path: Path) -> None:
    untimed = {key: value for key, value in passing(2).items() if key not in ("run_time", "cost")}
    row, _, other, _ = lines_of(written([passing(4), untimed], tmp_path / "index.html"))
    assert row[9:18] == [1004, 2012, 2.003984, 512, 1028, 2.007812, 1e-4, pytest.approx(2.04e-4), 2.04]
    assert other[12:18] == [None] * 6


def test_names_are_without_what_all_begin_with(tmp_path: Path) -> None:
    text = written([passing(1), refused("nets/a/b", "no")], tmp_path / "index.html")
    assert '<script type="application/json" id="prefix">"nets/"</script>' in text
    assert "<code>nets/</code>" in text
    assert ">a/b [integer]</span>" in text
    assert "<code>" not in written([passing(1), refused("b", "no")], tmp_path / "index.html").partition("<script>")[0]


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    text = written(made(5), tmp_path / "index.html")
    places = re.findall(r"(?:src|href)=\"([^\"]*)\"|url\((?!#)([^)]*)\)|@import", text)
    assert places == [("data:,", "")]


def test_the_licences_of_what_draws_are_in_the_page(tmp_path: Path) -> None:
    text = written(made(5), tmp_path / "index.html")
    for library in ("d3js.org v7", "@observablehq/plot v0"):
        _, notice, code = text.partition("Permission to use, copy, modify, and/or distribute this software")
        assert notice
        assert library in code.partition("Permission to use")[0]
        text = code


def test_names_are_no_markup(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script><!--&\u2028'\""
    text = written([refused(name, name)], tmp_path / "index.html")
    row = lines_of(text)[0]
    assert (row[0], row[5]) == (name, name)
    assert "<script>alert" not in text


def test_earlier_sweeps_and_changes_are_beside_it(tmp_path: Path) -> None:
    before, now = [passing(1), passing(2)], [passing(1), {**differing("x"), "id": "nets/net_0002"}]
    write_baseline(before, tmp_path / "baseline.json")
    changes = compare(map(entry_of, before), map(entry_of, now))
    text = written(now, tmp_path / "a.html", earlier=[tmp_path / "baseline.json"], changes=changes)
    _, _, row, details = lines_of(text)
    assert row[2:5] == ["differs", False, "ok"]
    assert details["now"]["numbers"] == ["verification out: 7 of 64, up to 5.0 LSB"]
    assert details["earlier"][0]["status"] == "ok"
    assert "<strong>failing</strong>" in text
    assert "No change." in written(before, tmp_path / "b.html", earlier=[tmp_path / "baseline.json"], changes=[])


def test_the_page_is_written_again_with_others_beside_it(tmp_path: Path) -> None:
    for name, results in (("a", [passing(1)]), ("b", [passing(1)]), ("c", [differing("nets/net_0001")])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
        swept = {"format": "tflq.sweep", "version": 1, "settings": {}, "fingerprint": {}, "sources": []}
        (tmp_path / name / "sweep.json").write_text(json.dumps(swept))
    assert run(["sweep", "page", *(str(tmp_path / name) for name in "cab")]) == 0
    text = (tmp_path / "c" / "index.html").read_text("utf-8")
    assert [entry["status"] for entry in lines_of(text)[1]["earlier"]] == ["ok", "ok"]
    assert "<strong>failing</strong>" in text


@pytest.mark.slow
def test_memory_does_not_grow_with_the_results(tmp_path: Path) -> None:
    page.write(made(10), tmp_path / "index.html")
    peaks = []
    for count in (500, 5000):
        tracemalloc.start()
        page.write(made(count), tmp_path / "index.html")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + (1 << 20)
    assert (tmp_path / "index.html").stat().st_size > 4 << 20
