"""Models of Kaggle: the real client against a server of this machine, and against its cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.kaggle_server import TOKEN, Kaggle, serving

from tflq.cli.main import run
from tflq.tools.sweep.fetchers import UnavailableError
from tflq.tools.sweep.kaggle import KaggleFetcher
from tflq.tools.sweep.store import read_results
from tflq.tools.sweep.task import Model

pytest.importorskip("kagglehub", reason="KAGGLE IS NOT TESTED: pip install kagglehub")

ONE, TWO, MANY, GATED, REFUSED = (f"maker/{name}/tfLite/int8/1" for name in ("one", "two", "many", "gated", "refused"))
MANIFEST = f"""\
version = 1

# A comment that stays.
[[model]]
id = "one"
kaggle = "{ONE}"
source = "https://example.com/one" # cites it
verified = false

[[model]]
id = "gone"
kaggle = "maker/gone/tfLite/int8/1"

[model.expect]
status = "unavailable"
reason = "a test"

[[model]]
kaggle = "{TWO}"
file = "b.tflite"
expect = {{ status = "ok", reason = "a test" }}
"""


@pytest.fixture
def kaggle(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kaggle]:
    """A Kaggle with some models, an empty cache, and no credentials."""
    from kagglesdk import kaggle_env

    for name in [name for name in os.environ if name.startswith("KAGGLE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    pad, split = ((models / f"{name}.tflite").read_bytes() for name in ("pad", "split"))
    held = {
        ONE: {"1.tflite": pad},
        TWO: {"a.tflite": pad, "deep/b.tflite": split, "b.tflite": split, "labels.txt": b"cat"},
        MANY: {**{f"{i}.txt": b"text" for i in range(30)}, "deep/net.tflite": split},
        GATED: {"1.tflite": pad},
        REFUSED: {"1.tflite": pad},
    }
    with serving(Kaggle(held, {GATED}, {REFUSED})) as one:
        monkeypatch.setitem(kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.LOCAL, f"http://127.0.0.1:{one.port}")
        yield one


def fetch(handle: str, file: str = "", *, offline: bool = False) -> Path:
    return KaggleFetcher(offline=offline, pause=0.01).fetch(Model("m", kaggle=handle, file=file))


def test_a_model_comes_once_and_then_from_the_cache(kaggle: Kaggle, models: Path, tmp_path: Path) -> None:
    path = fetch(ONE)
    assert path == tmp_path / "hub" / "models" / ONE / "1.tflite"
    assert path.read_bytes() == (models / "pad.tflite").read_bytes()
    asked = list(kaggle.asked)
    assert asked == [f"ListModelInstanceVersionFiles {ONE}", f"DownloadModelInstanceVersion {ONE} 1.tflite"]
    assert fetch(ONE) == fetch(ONE, offline=True) == fetch(ONE, "1.tflite", offline=True) == path
    assert kaggle.asked == asked


def test_a_file_that_is_named_comes_alone(kaggle: Kaggle, tmp_path: Path) -> None:
    assert fetch(TWO, "b.tflite").name == "b.tflite"
    assert kaggle.asked == [f"DownloadModelInstanceVersion {TWO} b.tflite"]
    assert fetch(TWO, "b.tflite", offline=True).is_file()
    with pytest.raises(UnavailableError, match="not in kagglehub's cache, and the sweep is offline"):
        fetch(TWO, "a.tflite", offline=True)


def test_a_pattern_has_to_match_one_file(kaggle: Kaggle) -> None:
    assert fetch(TWO, "a*").name == "a.tflite"
    with pytest.raises(UnavailableError, match=r"'\*.tflite' matches a.tflite, b.tflite, deep/b.tflite"):
        fetch(TWO)
    with pytest.raises(UnavailableError, match=r"no file matches 'c\*'; there are a.tflite"):
        fetch(TWO, "c*")


def test_a_large_bundle_comes_as_an_archive(kaggle: Kaggle, models: Path) -> None:
    assert fetch(MANY).read_bytes() == (models / "split.tflite").read_bytes()


def test_without_credentials_the_message_says_what_to_do(kaggle: Kaggle) -> None:
    with pytest.raises(UnavailableError, match=r"wants to know who asks \(HTTP 403\).*KAGGLE_API_TOKEN.*kaggle.json"):
        fetch(GATED)


def test_credentials_are_used(kaggle: Kaggle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
    assert fetch(GATED).is_file()
    with pytest.raises(UnavailableError, match=f"to this account .HTTP 403.; https://.*/{REFUSED} says if"):
        fetch(REFUSED)


def test_a_model_that_is_not_there(kaggle: Kaggle) -> None:
    with pytest.raises(UnavailableError, match="has no such model or file"):
        fetch("maker/gone/tfLite/int8/1")
    with pytest.raises(UnavailableError, match="has no such model or file"):
        fetch(ONE, "2.tflite")


def test_what_passes_is_tried_again(kaggle: Kaggle) -> None:
    kaggle.failures = 2
    assert fetch(ONE, "1.tflite").is_file()
    kaggle.failures = 3
    with pytest.raises(UnavailableError, match="HTTP 503: Busy"):
        fetch(TWO, "a.tflite")


def test_a_download_that_is_corrupt_is_none(kaggle: Kaggle) -> None:
    kaggle.corrupt = True
    with pytest.raises(UnavailableError, match="MD5"):
        fetch(ONE)
    kaggle.corrupt = False
    assert fetch(ONE).is_file()


def test_a_kaggle_that_cannot_be_reached(kaggle: Kaggle, monkeypatch: pytest.MonkeyPatch) -> None:
    from kagglesdk import kaggle_env

    monkeypatch.setitem(kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.LOCAL, "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match="Kaggle cannot be reached"):
        fetch(ONE)


def test_threads_that_want_one_model_download_it_once(kaggle: Kaggle) -> None:
    fetcher = KaggleFetcher()
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: fetcher.fetch(Model("m", kaggle=ONE)), range(4)))
    assert len(paths) == 1
    assert len(kaggle.asked) == 2


def test_without_kagglehub_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "kagglehub", None)
    with pytest.raises(UnavailableError, match=r"pip install '\.\[kaggle\]'"):
        fetch(ONE)


@pytest.mark.slow
def test_a_sweep_pins_what_it_fetched(
    kaggle: Kaggle, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "kaggle.toml"
    manifest.write_text(MANIFEST)
    command = ["sweep", str(manifest), "--cache", str(tmp_path / "cache"), "-o"]
    assert run([*command, str(tmp_path / "a"), "--pin"]) == 0
    said = capsys.readouterr().out.split()
    assert " ".join(said[said.index("pinned") :]).startswith(f"pinned 2 models in {manifest} ")
    results = {r["id"]: r for r in read_results(tmp_path / "a")}
    assert {id: r["status"] for id, r in results.items()} == {"one": "ok", "gone": "unavailable", TWO: "ok"}
    pad, split = (hashlib.sha256((models / f"{n}.tflite").read_bytes()).hexdigest() for n in ("pad", "split"))
    cites = 'source = "https://example.com/one" # cites it\n'
    expects = 'expect = { status = "ok", reason = "a test" }\n'
    pinned = (MANIFEST.replace(f"{cites}verified = false\n", f'{cites}sha256 = "{pad}"\nverified = true\n')).replace(
        expects, f'{expects}sha256 = "{split}"\nverified = true\n'
    )
    assert manifest.read_text() == pinned
    assert run([*command, str(tmp_path / "again"), "--pin", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pinned"] == {str(manifest): []}
    assert manifest.read_text() == pinned

    asked = len(kaggle.asked)
    assert run([*command, str(tmp_path / "b"), "--offline"]) == 0
    assert len(kaggle.asked) == asked
    assert {r["id"]: r["status"] for r in read_results(tmp_path / "b")} == {
        id: r["status"] for id, r in results.items()
    }

    Path(os.environ["KAGGLEHUB_CACHE"], "models", ONE, "1.tflite").write_bytes(b"other")
    assert run([*command, str(tmp_path / "c"), "--offline"]) == 5
    assert next(r for r in read_results(tmp_path / "c") if r["id"] == "one")["status"] == "checksum"


@pytest.mark.parametrize("text", ["model = [{ kaggle = 'a/b/tfLite/c/1' }]", "[['model']]\nkaggle = 'a/b/tfLite/c/1'"])
def test_a_manifest_that_is_not_plain_stays_as_it_is(text: str, tmp_path: Path) -> None:
    from tflq.base.errors import FileError
    from tflq.tools.sweep.manifest import pin

    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(FileError, match="by hand"):
        pin(path, {"a/b/tfLite/c/1": "0" * 64})
    assert path.read_text() == text
