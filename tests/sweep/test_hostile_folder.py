"""Folders of results that nobody vouches for: nothing outside of them is written, read or copied."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.made_results import differing, passing

from tflq.cli.main import run
from tflq.errors import FileError
from tflq.sweep.store import Store
from tflq.sweep.sweeping import Plan, sweep

SETTINGS = {"format": "tflq.sweep", "version": 1, "settings": {}, "fingerprint": {}, "sources": [], "jobs": []}


def write_sweep(folder: Path, artifacts: str = "artifacts/net--integer") -> Path:
    folder.mkdir()
    result = differing("net") | {"artifacts": artifacts}
    (folder / "results.jsonl").write_text(json.dumps(result) + "\n")
    (folder / "sweep.json").write_text(json.dumps(SETTINGS))
    (folder / "artifacts/net--integer/deep").mkdir(parents=True)
    (folder / "artifacts/net--integer/report.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        *(
            "p/../../hooks",
            "../hooks",
            "artifacts/../../hooks",
            "artifacts/a/b",
            "artifacts/..",
            "artifacts/.",
            "artifacts/",
        ),
        *(
            "artifacts",
            "/hooks",
            "artifacts\\x",
            "artifacts/a\\..\\b",
            "javascript:alert(1)",
            "data:text/html,x",
            "",
            None,
            3,
        ),
    ],
)
def test_artifacts_are_one_name_in_their_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = write_sweep(tmp_path / "in", name)
    (tmp_path / "in/hooks").mkdir()
    (tmp_path / "in/hooks/file").write_text("x")
    assert run(["sweep", "merge", str(folder), "-o", str(tmp_path / "out/deep")]) == 2
    assert "results.jsonl:1: artifacts: " in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if "hooks" in path.name] == [tmp_path / "in/hooks"]
    assert run(["sweep", "page", str(folder)]) == 2
    assert not (folder / "index.html").exists()


def test_links_in_artifacts_are_not_copied(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "in")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("a secret")
    left = folder / "artifacts/net--integer"
    (left / "file").symlink_to(secret / "key")
    (left / "deep/folder").symlink_to(secret)
    (left / "gone").symlink_to("nowhere")
    os.mkfifo(left / "pipe")
    assert run(["sweep", "merge", str(folder), "-o", str(tmp_path / "out")]) == 5
    copied = tmp_path / "out/artifacts/net--integer"
    assert sorted(str(path.relative_to(copied)) for path in copied.rglob("*")) == ["deep", "report.json"]


@pytest.mark.parametrize("name", ["artifacts/net--integer", "artifacts", "results.jsonl", "sweep.json"])
def test_links_are_not_followed_for_what_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = write_sweep(tmp_path / "in")
    elsewhere = tmp_path / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    assert run(["sweep", "merge", str(folder), "-o", str(tmp_path / "out")]) == 2
    assert f"{name}: this is a link" in capsys.readouterr().err
    assert not list((tmp_path / "out").rglob("report.json"))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "index.html",
            "summary.md",
            "junit.xml",
            "baseline.json",
            "changes.json",
            "results.jsonl",
            "sweep.json",
            "lock",
        ),
        *("artifacts", "work", "cache"),
    ],
)
def test_links_are_not_written_through(tmp_path: Path, name: str) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir() if name in ("artifacts", "work", "cache") else elsewhere.write_text("")
    (folder / name).symlink_to(elsewhere)
    for force, resume in ((True, False), (False, True)):
        with pytest.raises(FileError, match=f"{name}: this is a link"):
            sweep(Plan([__file__], folder, force=force, resume=resume), executor=lambda *_: None, fetchers=[None])  # type: ignore[arg-type, list-item]
    assert run(["sweep", "merge", str(write_sweep(tmp_path / "in")), "-o", str(folder), "--force"]) == 2
    assert not any(elsewhere.iterdir()) if elsewhere.is_dir() else elsewhere.read_text() == ""


def test_a_page_is_not_written_through_a_link(tmp_path: Path) -> None:
    folder, profile = write_sweep(tmp_path / "in"), tmp_path / "profile"
    profile.write_text("mine")
    (folder / "index.html").symlink_to(profile)
    assert run(["sweep", "page", str(folder)]) == 2
    assert profile.read_text() == "mine"


def test_what_a_failure_left_is_not_moved_through_a_link(tmp_path: Path) -> None:
    left, elsewhere = tmp_path / "left", tmp_path / "elsewhere"
    left.mkdir()
    elsewhere.mkdir()
    store = Store(tmp_path / "out")
    (tmp_path / "out/artifacts").mkdir()
    (tmp_path / "out/artifacts/net--integer").symlink_to(elsewhere)
    store.keep("net", "integer", left)
    store.close()
    assert not any(elsewhere.iterdir())
    assert (tmp_path / "out/artifacts/net--integer").is_dir()
    assert not (tmp_path / "out/artifacts/net--integer").is_symlink()


def test_parts_have_a_number_that_can_be_counted_to(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "in")
    for shard in ([1, 1 << 40], [0, 0], [1], [2, 1], "1/2"):
        (folder / "sweep.json").write_text(json.dumps(SETTINGS | {"settings": {"shard": shard}}))
        assert run(["sweep", "merge", str(folder), "-o", str(tmp_path / "out"), "--force"]) == 2


def test_a_source_of_any_scheme_is_text_of_the_page(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "in")
    result = passing(0)
    result["model"] |= {"source": "javascript:alert(1)", "place": "data:text/html,<script>alert(1)</script>"}
    (folder / "results.jsonl").write_text(json.dumps(result) + "\n")
    assert run(["sweep", "page", str(folder)]) == 0
    page = (folder / "index.html").read_text()
    assert page.count("javascript:alert(1)") == 1  # in the JSON that the script shows as text
    assert 'href: encodeURI(place) + "/"' in page
    assert page.count('make("a"') == 1
    assert "<script>alert(1)" not in page


def test_a_cache_that_others_can_write_to_is_refused_before_a_sweep(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o775)
    with pytest.raises(FileError, match="others can write to this folder"):
        sweep(Plan([tmp_path], tmp_path / "out", cache=cache))
    assert not (tmp_path / "out").exists()
