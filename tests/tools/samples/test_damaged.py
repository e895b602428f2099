"""Files of samples, damaged at random: each is read, or refused in a sentence that names it."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.damaging import damaged_bytes

from tflq.base.errors import FileError, OptionError
from tflq.tools.samples.files import Images
from tflq.tools.samples.inputs import Entry, Input
from tflq.tools.samples.reading import samples_of

COUNT = 200
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
VECTORS = Entry("", 0, (Input("x", "x", (None, 2), np.dtype(np.float32)),), ())
PICTURES = Entry("", 0, (Input("x", "x", (1, 4, 4, 3), np.dtype(np.float32)),), ())
SHAPE = b"(4, 2)"
HUGE = (b"(4000000000, 2000000000)", b"(%d, 2)" % 10**30, b"(5, 2)")
"""Shapes that no memory, no integer of 64 bits, or not the file holds."""


def saved(save: Callable[[io.BytesIO], None]) -> bytes:
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


def image(kind: str) -> bytes:
    pillow = pytest.importorskip("PIL.Image", reason="needs Pillow")
    return saved(lambda stream: pillow.fromarray(np.zeros((5, 7, 3), np.uint8)).save(stream, kind))


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file with changed bytes, cut, or with a huge shape in its header."""
    if rng.random() < 0.2 and SHAPE in data:
        huge = rng.choice(HUGE)
        return data.replace(SHAPE.ljust(len(huge)), huge)
    return damaged_bytes(data, rng)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["stored.npz", "deflated.npz", "rows.npy", "photo.png", "photo.jpg", "photo.bmp"])
def test_a_damaged_file_of_samples_is_refused_in_a_sentence(tmp_path: Path, kind: str) -> None:
    stem, suffix = kind.split(".")
    valid = {
        "stored": lambda: saved(lambda stream: np.savez(stream, x=ROWS)),
        "deflated": lambda: saved(lambda stream: np.savez_compressed(stream, x=ROWS)),
        "rows": lambda: saved(lambda stream: np.save(stream, ROWS)),
        "photo": lambda: image({"jpg": "JPEG"}.get(suffix, suffix)),
    }[stem]()
    path = tmp_path / kind
    entry, images = (PICTURES, Images((0,), (1,))) if stem == "photo" else (VECTORS, None)
    rng = random.Random(kind)
    refusals: list[str] = []
    for _ in range(COUNT):
        path.write_bytes(damaged(valid, rng))
        try:
            list(samples_of(tmp_path if images else path, entry, images=images).arrays)
        except (FileError, OptionError) as error:
            refusals.append(str(error))
    assert refusals
    assert all(str(tmp_path) in refusal and len(refusal) < 700 for refusal in refusals)
