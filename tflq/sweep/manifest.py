"""Manifests: TOML files that list models.

version = 1
targets = ["integer", "kernels"]        # of models that name none; by default those of the sweep

[[model]]
id = "mobilenet_v2"                     # by default the file's name
path = "mobilenet_v2.tflite"            # relative to the manifest, a pattern gives a model for each file
# or  url = "https://..."
# or  kaggle = "owner/model/tfLite/variation/version"  with  file = "*.tflite"
source = "https://..."                  # the page that cites it
sha256 = "..."
verified = true                         # false until someone pinned it
targets = ["tosa"]
inputs = "mobilenet_v2.npz"
shapes = { image = [1, 224, 224, 3] }

[[model.expect]]                        # `expect = { ... }` for a single one
status = "refused"
targets = ["tosa"]                      # by default all
reason = "a custom operator"

[[expect]]                              # for all models whose id matches
match = "detection/*"
status = "original-fails"
reason = "..."
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tflq.errors import FileError, InvalidModelError, OptionError
from tflq.files import file_errors, replace_file
from tflq.sweep.fetching import HANDLE, expanded, is_pattern
from tflq.sweep.result import STATUSES, Expectation, Model, Result

SUFFIX: Final = ".tflite"
MANIFEST_VERSION: Final = 1
TEXTS: Final = ("id", "path", "url", "kaggle", "file", "source", "sha256", "inputs")
MODEL_KEYS: Final = {*TEXTS, "targets", "shapes", "expect", "verified"}
EXPECT_KEYS: Final = {"match", "status", "targets", "reason"}
TOP_KEYS: Final = {"version", "targets", "model", "expect"}


def read_manifest(path: Path) -> list[Model]:
    """The models of a manifest, in its order. InvalidModelError names the entry and the key that is wrong."""
    with file_errors(path):
        text = path.read_text("utf-8")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidModelError("", f"not a TOML file: {error}", path=str(path)) from error
    return list(_Manifest(path).models(document))


class _Manifest:
    """Makes models of a document, and checks it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def models(self, document: Mapping[str, Any]) -> Iterator[Model]:
        self._known("", document, TOP_KEYS)
        if document.get("version", MANIFEST_VERSION) != MANIFEST_VERSION:
            raise self._wrong("version", f"this tflq reads version {MANIFEST_VERSION}")
        targets = self._texts("", document, "targets")
        common = self._expectations("expect", document.get("expect", []))
        entries = document.get("model", [])
        if not isinstance(entries, list):
            raise self._wrong("model", "models are tables: [[model]]")
        for i, entry in enumerate(entries):
            yield from self._entry(f"model[{i}]", entry, targets, common)

    def _entry(
        self, where: str, entry: object, targets: tuple[str, ...], common: tuple[Expectation, ...]
    ) -> Iterator[Model]:
        if not isinstance(entry, dict):
            raise self._wrong(where, "a model is a table: [[model]]")
        self._known(where, entry, MODEL_KEYS)
        texts = {key: self._text(where, entry, key) for key in TEXTS}
        if sum(bool(texts[key]) for key in ("path", "url", "kaggle")) != 1:
            raise self._wrong(where, "one of path, url and kaggle says where a model is")
        if texts["sha256"] and not re.fullmatch("[0-9a-f]{64}", texts["sha256"]):
            raise self._wrong(f"{where}.sha256", "a SHA-256 is 64 hex digits, in lower case")
        if texts["kaggle"] and not HANDLE.fullmatch(texts["kaggle"]):
            raise self._wrong(f"{where}.kaggle", "a handle is owner/model/tfLite/variation/version")
        texts["inputs"] = texts["inputs"] and str(self._path.parent / texts["inputs"])
        rest: dict[str, Any] = {
            "targets": self._texts(where, entry, "targets") or targets,
            "shapes": self._shapes(where, entry.get("shapes", {})),
            "verified": entry.get("verified", True) is True,
            "expect": (*self._expectations(f"{where}.expect", entry.get("expect", [])), *common),
        }
        if not texts["path"]:
            texts["id"] = texts["id"] or place_name(texts["url"] or texts["kaggle"])
            yield Model(**{**texts, **rest})
            return
        pattern = str(self._path.parent / texts["path"])
        several = is_pattern(pattern)
        files = expanded(pattern) if several else [(Path(pattern).name, Path(pattern))]
        if not files:
            raise FileError(pattern, "no file matches", remedy=f"see {where} of {self._path}")
        for name, path in files:
            stem = name.removesuffix(SUFFIX)
            id = "/".join(part for part in (texts["id"], stem) if part) if several else texts["id"] or stem
            yield Model(**{**texts, **rest, "id": id, "path": str(path)})

    def _expectations(self, where: str, entries: object) -> tuple[Expectation, ...]:
        expectations = []
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict):
                raise self._wrong(where, "an expectation is a table of status and reason")
            self._known(where, entry, EXPECT_KEYS)
            status, reason = self._text(where, entry, "status"), self._text(where, entry, "reason")
            if status not in STATUSES:
                raise self._wrong(f"{where}.status", f"'{status}' is not one of {', '.join(STATUSES)}")
            if not reason:
                raise self._wrong(where, "an expectation has a reason")
            targets = self._texts(where, entry, "targets")
            expectations.append(Expectation(status, reason, targets, self._text(where, entry, "match") or "*"))
        return tuple(expectations)

    def _shapes(self, where: str, shapes: object) -> dict[str, tuple[int, ...]]:
        if not isinstance(shapes, dict) or not all(
            isinstance(shape, list) and all(isinstance(d, int) and d > 0 for d in shape) for shape in shapes.values()
        ):
            raise self._wrong(f"{where}.shapes", "shapes are lists of dims by input: { image = [1, 224, 224, 3] }")
        return {name: tuple(shape) for name, shape in shapes.items()}

    def _text(self, where: str, table: Mapping[str, Any], key: str) -> str:
        value = table.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(f"{where}.{key}", f"a text, not {value!r}")
        return value

    def _texts(self, where: str, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self._wrong(f"{where}.{key}", f"a list of texts, not {value!r}")
        return tuple(value)

    def _known(self, where: str, table: Mapping[str, Any], keys: set[str]) -> None:
        for key in table:
            if key not in keys:
                raise self._wrong(f"{where}.{key}", f"there is no such key; there are {', '.join(sorted(keys))}")

    def _wrong(self, where: str, what: str) -> InvalidModelError:
        return InvalidModelError(where.lstrip("."), what, path=str(self._path))


def place_name(place: str) -> str:
    """A name for what is at a URL or under a handle."""
    return place.split("://")[-1].split("?")[0].removesuffix(SUFFIX).strip("/")


# The models of a sweep's sources: folders, patterns, single files and manifests.


def find_models(sources: Sequence[str | os.PathLike[str]]) -> list[Model]:
    """The models of all sources, in their order.

    A folder gives every .tflite file in it, named by the folder and the path in it: "zoo/vision/net"; so does a
    pattern, named by the path from its first wild part. A URL is a model of its own. A .toml file is a manifest.

    FileError for a source that is not there or holds no model; OptionError if two models have one id.
    """
    texts = [os.fspath(source) for source in sources]
    labels = _labels([Path(text) for text in texts if Path(text).is_dir()])
    models: list[Model] = []
    for text in texts:
        added = list(_models(text, labels))
        if not added:
            remedy = "name a folder, a file or a pattern that has models"
            raise FileError(text, f"no {SUFFIX} file is in it", remedy=remedy)
        models += added
    models = list({(m.id, m.place, m.targets): m for m in models}.values())
    _check_ids(models)
    return models


def _models(text: str, labels: dict[Path, str]) -> Iterator[Model]:
    path = Path(text)
    if "://" in text:
        yield Model(place_name(text), url=text)
    elif path.is_dir():
        label = labels[path.resolve()]
        for name, file in expanded(str(path / "**" / f"*{SUFFIX}")):
            yield Model(f"{label}/{name.removesuffix(SUFFIX)}", path=str(file))
    elif is_pattern(text):
        for name, file in expanded(text):
            yield Model(name.removesuffix(SUFFIX), path=str(file))
    elif path.suffix == ".toml" and path.is_file():
        yield from read_manifest(path)
    elif path.is_file():
        yield Model(path.name.removesuffix(SUFFIX), path=text)
    else:
        raise FileError(text, "there is no such file or folder")


def _labels(folders: Iterable[Path]) -> dict[Path, str]:
    """A name for each folder: as much of the end of its path as tells it from the others."""
    paths = list(dict.fromkeys(folder.resolve() for folder in folders))
    names = dict.fromkeys(paths, 1)
    while True:
        labels = {path: "/".join(path.parts[-n:]) for path, n in names.items()}
        counts = Counter(labels.values())
        if len(counts) == len(paths):
            return labels
        for path, label in labels.items():
            names[path] += counts[label] > 1


def _check_ids(models: Sequence[Model]) -> None:
    places: dict[str, str] = {}
    for model in models:
        other = places.setdefault(model.id, model.place)
        if other != model.place:
            raise OptionError(
                f"{other} and {model.place} both have the id '{model.id}': a manifest can name them, or their folders"
            )


# Pins: the SHA-256 of models that were fetched, written into the manifest that lists them. Only the lines `sha256` and
# `verified` of an entry change.


UNREAD: Final = ("invalid", "checksum")


def hashes_of(results: Iterable[Result]) -> dict[str, str]:
    """The SHA-256 of each model that was read, by id."""
    return {
        result["id"]: result["model"]["sha256"]
        for result in results
        if result["status"] not in UNREAD and result.get("model", {}).get("sha256")
    }


def pin(path: Path, hashes: Mapping[str, str]) -> list[str]:
    """Writes the hashes of entries of a manifest that have a URL or a handle, and no hash. Returns their ids.

    FileError if the manifest is not written in plain [[model]] tables; then it stays as it is.
    """
    with file_errors(path):
        text = path.read_text("utf-8")
    document = tomllib.loads(text)
    pinned = {i: id for i, entry in enumerate(document.get("model", [])) if (id := _unpinned(entry)) in hashes}
    if not pinned:
        return []
    for i, id in pinned.items():
        document["model"][i] |= {"sha256": hashes[id], "verified": True}
    edited = _edited(text, {i: hashes[id] for i, id in pinned.items()})
    try:
        same = tomllib.loads(edited) == document
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise FileError(str(path), "its entries are not plain [[model]] tables", remedy="write the pins by hand")
    with file_errors(path):
        replace_file(path, [edited.encode("utf-8")])
    return list(pinned.values())


def _unpinned(entry: Mapping[str, Any]) -> str:
    place = entry.get("kaggle") or entry.get("url")
    return (entry.get("id") or place_name(place)) if place and not entry.get("sha256") else ""


def _edited(text: str, hashes: Mapping[int, str]) -> str:
    """The lines of a manifest; after the last key of an entry's own table come its pins."""
    lines = text.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*model\s*\]\]", line)]
    for i, start in sorted(enumerate(starts), reverse=True):
        if i not in hashes:
            continue
        end = next((n for n in range(start + 1, len(lines)) if re.match(r"\s*\[", lines[n])), len(lines))
        own = [line for line in lines[start:end] if not re.match(r"\s*(sha256|verified)\s*=", line)]
        last = max(n for n, line in enumerate(own) if line.strip() and not line.lstrip().startswith("#"))
        own[last] = own[last].rstrip("\r\n") + "\n"
        own[last + 1 : last + 1] = [f'sha256 = "{hashes[i]}"\n', "verified = true\n"]
        lines[start:end] = own
    return "".join(lines)
