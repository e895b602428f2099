"""Sources and manifests, to models."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tflq.base.errors import FileError, OptionError
from tflq.tools.sweep.manifest import find_models, read_manifest
from tflq.tools.sweep.store import Selection, jobs_of, read_results, read_shard
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.sweep.task import expectation_for


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(path.name.encode())


def test_folders_patterns_and_files_have_ids_of_their_own(tmp_path: Path) -> None:
    touch(tmp_path / "a/models/x/one.tflite", tmp_path / "a/models/two.tflite", tmp_path / "a/models/notes.txt")
    touch(tmp_path / "b/models/two.tflite")
    a, b = tmp_path / "a/models", tmp_path / "b/models"
    assert [m.id for m in find_models([a])] == ["models/two", "models/x/one"]
    assert [m.id for m in find_models([a, b])] == ["a/models/two", "a/models/x/one", "b/models/two"]
    assert [m.id for m in find_models([f"{a}/**/*.tflite"])] == ["two", "x/one"]
    assert [m.id for m in find_models([a / "two.tflite"])] == ["two"]
    assert [m.id for m in find_models([a, a])] == ["models/two", "models/x/one"]
    with pytest.raises(OptionError, match="both have the id 'two'"):
        find_models([a / "two.tflite", b / "two.tflite"])


def test_a_source_without_models_is_an_error(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "none", f"{tmp_path}/*.tflite"):
        with pytest.raises(FileError):
            find_models([source])


MANIFEST = """
version = 1
targets = ["integer", "kernels"]

[[model]]
path = "nets/*.tflite"
id = "nets"

[[model]]
id = "net"
url = "https://example.org/net.tflite"
sha256 = "{sha256}"
targets = ["tosa"]
shapes = {{ image = [1, 8, 8, 3] }}
inputs = "net.npz"
expect = {{ status = "refused", targets = ["tosa"], reason = "a custom operator" }}

[[model]]
kaggle = "google/mobilenet-v2/tfLite/035-128-classification/1"
file = "*.tflite"
verified = false

[[expect]]
match = "nets/*"
status = "original-fails"
reason = "an old operator"
"""


def test_a_manifest_says_all_of_its_models(tmp_path: Path) -> None:
    touch(tmp_path / "nets/a.tflite", tmp_path / "nets/b.tflite")
    path = tmp_path / "some.toml"
    path.write_text(MANIFEST.format(sha256="0" * 64))
    a, b, net, kaggle = find_models([path])
    assert (a.id, a.path, a.targets) == ("nets/a", str(tmp_path / "nets/a.tflite"), ("integer", "kernels"))
    assert b.id == "nets/b"
    assert net.shapes == {"image": (1, 8, 8, 3)}
    assert net.inputs == str(tmp_path / "net.npz")
    assert net.targets == ("tosa",)
    assert kaggle.id == "google/mobilenet-v2/tfLite/035-128-classification/1"
    assert not kaggle.verified
    found = expectation_for(a, "integer")
    assert found is not None
    assert (found.status, found.reason) == ("original-fails", "an old operator")
    assert expectation_for(net, "integer") is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("version = 2", "version: 2 is not 1"),
        ("[[model]]\nid = 'x'", "one of path, url, kaggle"),
        ("[[model]]\npath = 'x'\nurl = 'y'", "one of path, url, kaggle"),
        ("[[model]]\nurl = 'x'\nsha256 = 'abc'", "64 hex digits"),
        ("[[model]]\nurl = 'x'\ncolour = 'red'", "no such key"),
        ("[[model]]\nurl = 'x'\nexpect = { status = 'bad', reason = 'r' }", "not one of ok, differs"),
        ("[[model]]\nurl = 'x'\nexpect = { status = 'ok' }", r":3: model\[0\].expect.reason: it is missing"),
        ("[[model]]\nurl = 'x'\nshapes = { a = 'b' }", r"model\[0\].shapes.a: 'b' is not a list"),
        ("[[model]]\nurl = 3", "a text"),
        ("[[model", "not a TOML file"),
    ],
)
def test_a_wrong_manifest_says_where(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=what) as error:
        read_manifest(path)
    assert str(path) in str(error.value)


def test_pinned_fetched_and_expected(models: Path, tmp_path: Path) -> None:
    """A URL with its hash, the same with a wrong one, one that is not there, and an expectation that comes true."""
    pad = models / "pad.tflite"
    (tmp_path / "broken.tflite").write_bytes(b"no model")
    sha256 = hashlib.sha256(pad.read_bytes()).hexdigest()
    path = tmp_path / "some.toml"
    path.write_text(f"""
[[model]]
id = "right"
url = "{pad.as_uri()}"
sha256 = "{sha256}"
[[model]]
id = "wrong"
url = "{pad.as_uri()}"
sha256 = "{"0" * 64}"
[[model]]
id = "missing"
url = "{tmp_path.as_uri()}/none.tflite"
[[model]]
id = "broken"
path = "broken.tflite"
expect = {{ status = "invalid", reason = "a text" }}
[[model]]
id = "elsewhere"
kaggle = "a/b/tfLite/c/1"
""")
    sweep(Plan([path], tmp_path / "out", cache=tmp_path / "cache"))
    results = {r["id"]: r for r in read_results(tmp_path / "out")}
    statuses = {id: (r["status"], r["expected"]) for id, r in results.items()}
    assert statuses == {
        "right": ("ok", True),
        "wrong": ("checksum", False),
        "missing": ("unavailable", False),
        "broken": ("invalid", True),
        "elsewhere": ("unavailable", False),
    }
    assert results["broken"]["expectation"] == {"status": "invalid", "reason": "a text"}
    assert (tmp_path / "cache/models" / f"{sha256}.tflite").read_bytes() == pad.read_bytes()


def test_parts_are_apart_and_together_all(models: Path) -> None:
    found = find_models([models])
    parts = [jobs_of(found, ["integer", "tosa"], Selection(shard=(i, 3))) for i in (1, 2, 3)]
    keys = [{(model.id, target) for model, target in part} for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys)) == 2 * len(found)
    assert all(keys)
    with pytest.raises(OptionError, match="no model's id matches"):
        jobs_of(found, ["integer"], Selection(("pad", "nothing")))
    for wrong in ("0/3", "4/3", "x"):
        with pytest.raises(OptionError):
            read_shard(wrong)


def test_a_target_that_is_not_known_has_its_line_in_the_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "m.toml"
    manifest.write_text('version = 1\n\n[[model]]\npath = "x.tflite"\ntargets = ["kernels", "nosuch"]\n')
    with pytest.raises(OptionError, match=r"m\.toml:5: target 'nosuch' is not known; known: integer, "):
        read_manifest(manifest)
