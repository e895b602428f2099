"""Sources of a sweep: folders, patterns, single files and manifests, to models."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tflq.errors import FileError, OptionError
from tflq.sweep.globs import expanded, is_pattern
from tflq.sweep.manifest import read_manifest
from tflq.sweep.models import Model

__all__ = ["find_models"]

SUFFIX = ".tflite"


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
        found = list(_models(text, labels))
        if not found:
            raise FileError(
                text, f"no {SUFFIX} file is in it", remedy="name a folder, a file or a pattern that has models"
            )
        models += found
    models = list({(m.id, m.place, m.targets): m for m in models}.values())
    _check_ids(models)
    return models


def _models(text: str, labels: dict[Path, str]) -> Iterator[Model]:
    path = Path(text)
    if "://" in text:
        yield Model(text.split("://")[-1].split("?")[0].removesuffix(SUFFIX), url=text)
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
