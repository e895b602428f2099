"""Models of a sweep: manifests, TOML files that list them, and files and folders.

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

import glob
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict

from tflq.base.documents import Check, TomlFile, exactly
from tflq.base.errors import FileError, OptionError, Reason
from tflq.base.files import FilePath, check_link, replace_file
from tflq.formats.backend import of_target
from tflq.tools.sweep.task import Expectation, Model, Result, Status

SUFFIX: Final = ".tflite"
_SUFFIX_IN_ANY_CASE: Final = ".[tT][fF][lL][iI][tT][eE]"
MANIFEST_VERSION: Final = 1
PLACES: Final = ("path", "url", "kaggle")
HANDLE: Final = re.compile(r"[\w.-]+/[\w.-]+/[A-Za-z0-9]+/[\w.-]+/[1-9]\d*", re.ASCII)
"""owner/model/framework/variation/version."""
_HANDLE_OR_NONE: Final = re.compile(f"(?:{HANDLE.pattern})?", re.ASCII)
_SHA256: Final = re.compile("(?:[0-9a-f]{64})?")

_Text = Annotated[str, Check("a text without NUL", lambda text: "\0" not in text)]
_Dim = Annotated[int, Check("a dim, from 1 on", lambda dim: dim > 0)]


class _Expectation(TypedDict, total=False):
    match: str
    status: Required[Status]
    targets: list[_Text]
    reason: Required[Annotated[str, Check("a reason", bool)]]


class _Entry(TypedDict, total=False):
    id: _Text
    path: _Text
    url: _Text
    kaggle: Annotated[str, Check("a handle: owner/model/tfLite/variation/version", _HANDLE_OR_NONE.fullmatch)]
    file: _Text
    source: _Text
    sha256: Annotated[str, Check("a SHA-256: 64 hex digits, in lower case", _SHA256.fullmatch)]
    inputs: _Text
    targets: list[_Text]
    shapes: Mapping[str, list[_Dim]]
    expect: list[_Expectation] | _Expectation
    verified: bool


class _Document(TypedDict, total=False):
    """A manifest."""

    version: Annotated[int, exactly(MANIFEST_VERSION)]
    targets: list[_Text]
    model: list[Annotated[_Entry, Check(f"a model with one of {', '.join(PLACES)}", lambda entry: _has_place(entry))]]
    expect: list[_Expectation] | _Expectation


def _has_place(entry: Mapping[str, Any]) -> bool:
    return sum(bool(entry.get(key)) for key in PLACES) == 1


def read_manifest(path: Path) -> list[Model]:
    """The models of a manifest, in its order. OptionError names line, entry and key of what is wrong, FileError a
    pattern that no file matches."""
    file = TomlFile(path)
    document: _Document = file.checked(_Document, "a manifest")
    _check_targets(file, ("targets",), document.get("targets", []))
    for i, entry in enumerate(document.get("model", [])):
        _check_targets(file, ("model", i, "targets"), entry.get("targets", []))
    common = _expectations(document.get("expect", []))
    entries = enumerate(document.get("model", []))
    return [model for i, entry in entries for model in _of_entry(path, i, entry, document.get("targets", []), common)]


def _check_targets(file: TomlFile, place: tuple[str | int, ...], targets: Sequence[str]) -> None:
    """OptionError for a target that is neither known nor a file."""
    for target in targets:
        try:
            of_target(target, static=True)
        except OptionError as error:
            what, line = error.reason, str(file.locate(place)[0])
            if what.path:  # a fault of a target's own file
                raise
            raise OptionError(Reason(what.what, file.path, place=line, value=target, remedy=what.remedy)) from error


def _of_entry(
    manifest: Path, number: int, entry: _Entry, targets: Sequence[str], common: tuple[Expectation, ...]
) -> Iterator[Model]:
    inputs = entry.get("inputs", "")
    id, place = entry.get("id", ""), entry.get("path", "")
    model = Model(
        id or place_name(entry.get("url") or entry.get("kaggle", "")),
        url=entry.get("url", ""),
        kaggle=entry.get("kaggle", ""),
        file=entry.get("file", ""),
        source=entry.get("source", ""),
        sha256=entry.get("sha256", ""),
        targets=tuple(entry.get("targets") or targets),
        inputs=inputs and str(manifest.parent / inputs),
        shapes={name: tuple(shape) for name, shape in entry.get("shapes", {}).items()},
        expect=(*_expectations(entry.get("expect", [])), *common),
        verified=entry.get("verified", True),
    )
    if not place:
        yield model
        return
    pattern = str(manifest.parent / place)
    several = is_pattern(pattern)
    files = expanded(pattern) if several else [(Path(pattern).name, Path(pattern))]
    if not files:
        raise FileError(pattern, "no file matches", remedy=f"see model[{number}] of {manifest}")
    for name, path in files:
        stem = name.removesuffix(SUFFIX)
        model_id = "/".join(part for part in (id, stem) if part) if several else id or stem
        yield replace(model, id=model_id, path=str(path))


def _expectations(entries: list[_Expectation] | _Expectation) -> tuple[Expectation, ...]:
    listed = entries if isinstance(entries, list) else [entries]
    return tuple(
        Expectation(each["status"], each["reason"], tuple(each.get("targets", ())), each.get("match") or "*")
        for each in listed
    )


def place_name(place: str) -> str:
    """A name for what is at a URL or under a handle."""
    return place.split("://")[-1].split("?")[0].removesuffix(SUFFIX).strip("/")


# The models of a sweep's sources: folders, patterns, single files and manifests.


def find_models(sources: Sequence[FilePath]) -> list[Model]:
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
        for file in sorted(map(Path, glob.glob(f"**/*{_SUFFIX_IN_ANY_CASE}", root_dir=path, recursive=True))):
            if (path / file).is_file():
                yield Model(f"{label}/{file.with_suffix('').as_posix()}", path=str(path / file))
    elif is_pattern(text):
        for name, file in expanded(text):
            yield Model(name.removesuffix(SUFFIX), path=str(file))
    elif path.suffix == ".toml" and path.is_file():
        yield from read_manifest(path)
    elif path.exists():
        yield Model(path.name.removesuffix(SUFFIX), path=text)
    else:
        check_link(path)
        raise FileError(text, "there is no such file or folder")


def is_pattern(text: str) -> bool:
    """Whether a path is a pattern, and not the name of a file."""
    return glob.has_magic(text) and not Path(text).exists()


def expanded(pattern: str) -> list[tuple[str, Path]]:
    """The files that match a pattern, sorted, each with its path below the folder that the pattern starts from."""
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    root = Path(*parts[:fixed])
    matches = sorted(Path(p) for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    return [(path.relative_to(root).as_posix(), path) for path in matches]


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
    file = TomlFile(path)
    text, document = file.text, file.content
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
    replace_file(path, [edited.encode("utf-8")])
    return list(pinned.values())


def _unpinned(entry: Mapping[str, Any]) -> str:
    place = entry.get("kaggle") or entry.get("url")
    return (entry.get("id") or place_name(place)) if place and not entry.get("sha256") else ""


def _edited(text: str, hashes: Mapping[int, str]) -> str:
    """The lines of a manifest; after the last key of an entry's table come its pins."""
    lines = text.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*model\s*\]\]", line)]
    for i, start in sorted(enumerate(starts), reverse=True):
        if i not in hashes:
            continue
        end = next((n for n in range(start + 1, len(lines)) if re.match(r"\s*\[", lines[n])), len(lines))
        table = [line for line in lines[start:end] if not re.match(r"\s*(sha256|verified)\s*=", line)]
        last = max(n for n, line in enumerate(table) if line.strip() and not line.lstrip().startswith("#"))
        table[last] = table[last].rstrip("\r\n") + "\n"
        table[last + 1 : last + 1] = [f'sha256 = "{hashes[i]}"\n', "verified = true\n"]
        lines[start:end] = table
    return "".join(lines)
