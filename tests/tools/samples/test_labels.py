"""Labels of samples, from every place that may have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.base.errors import FileError, OptionError
from tflq.tools.samples.files import Images
from tflq.tools.samples.inputs import Entry, Input
from tflq.tools.samples.reading import Span, drawn, samples_of
from tflq.tools.verify.metrics import default_metrics

X = Input("given", "x", (None, 2), np.dtype(np.float32))
ENTRY = Entry("", 0, (X,))
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
LABELS = [3, 1, 4, 1]


def labels(data: Any, where: Any = None, entry: Entry = ENTRY, **options: Any) -> list[Any]:
    return [each.tolist() for each in samples_of(data, entry, labels=where, **options).labels]


def test_labels_are_an_array_beside_the_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", any_name=ROWS, labels=LABELS)
    np.savez(tmp_path / "other.npz", given=ROWS, y=LABELS)
    each = [[label] for label in LABELS]
    assert labels({"given": ROWS, "labels": LABELS}) == each
    assert labels({"given": ROWS, "y": LABELS}, "y") == each
    assert labels(tmp_path / "data.npz") == labels(tmp_path / "data.npz", "labels") == each
    assert labels(str(tmp_path / "other.npz"), "y") == each
    assert [sample["given"].tolist() for sample in samples_of(tmp_path / "data.npz", ENTRY).arrays] == [
        [row] for row in ROWS.tolist()
    ]
    with pytest.raises(OptionError, match="'y', which is not an input"):
        labels(tmp_path / "other.npz")


def test_an_input_of_that_name_is_an_input() -> None:
    entry = Entry("", 0, (X, Input("labels", "", (None, 1), np.dtype(np.int32))))
    (sample,) = samples_of({"given": ROWS[:1], "labels": np.ones((1, 1), np.int32)}, entry).arrays
    assert set(sample) == {"given", "labels"}


def test_labels_are_a_file_or_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", LABELS)
    np.savez(tmp_path / "one.npz", classes=LABELS)
    np.savez(tmp_path / "two.npz", labels=LABELS, other=[1])
    (tmp_path / "head.csv").write_text("label\n3\n1\n\n4\n1\n")
    (tmp_path / "marked.csv").write_text("3\n1\n4\n1\n", encoding="utf-8-sig")
    (tmp_path / "named.csv").write_text("file,label\na.png,3\nb.png,1\nc.png,4\nd.png,1\n")
    for where in (
        LABELS,
        np.array(LABELS),
        *(tmp_path / n for n in ("y.npy", "one.npz", "two.npz", "head.csv", "marked.csv")),
    ):
        assert labels({"given": ROWS}, where) == [[label] for label in LABELS]
    assert labels(list(ROWS), tmp_path / "named.csv") == [[label] for label in LABELS]
    assert labels(list(ROWS), ROWS) == [[row] for row in ROWS.tolist()]


def images(folder: Path, *names: str) -> None:
    image = pytest.importorskip("PIL.Image")
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        image.fromarray(np.full((4, 4, 3), 7 * len(name), np.uint8)).save(folder / name)


IMAGE = Entry("", 0, (Input("image", "", (1, 4, 4, 3), np.dtype(np.float32)),))
PIXELS = Images.of(0, 1)


def test_labels_of_images_are_beside_them(tmp_path: Path) -> None:
    images(tmp_path, "b.png", "a.png")
    (tmp_path / "labels.csv").write_text("name,class\nb.png,5\na.png,2\nunused.png,9\n")
    assert labels(tmp_path, None, IMAGE, images=PIXELS) == [[2], [5]]
    (tmp_path / "labels.csv").write_text("b.png,5\na.png,2\n", encoding="utf-8-sig")
    assert labels(tmp_path, None, IMAGE, images=PIXELS) == [[2], [5]]
    (tmp_path / "labels.csv").write_text("b.png,0.5,1\na.png,0.25,2\n")
    assert labels(tmp_path, None, IMAGE, images=PIXELS) == [[[0.25, 2]], [[0.5, 1]]]
    (tmp_path / "labels.csv").write_text("b.png,5\n")
    with pytest.raises(FileError, match=r"no label of 'a\.png'"):
        labels(tmp_path, None, IMAGE, images=PIXELS)
    (tmp_path / "labels.csv").write_text("b.png,5\na.png,cat\n")
    with pytest.raises(FileError, match=r"line 2.*'a.png,cat' has no label that is a number"):
        labels(tmp_path, None, IMAGE, images=PIXELS)
    (tmp_path / "labels.csv").write_text("b.png,5\na.png,2\nb.png,5\n")
    with pytest.raises(FileError, match=r"line 3.*'b.png' has a label already"):
        labels(tmp_path, None, IMAGE, images=PIXELS)


@pytest.mark.parametrize(("folders", "classes"), [(("dog", "cat"), [[0], [0], [1]]), (("7", "12"), [[12], [12], [7]])])
def test_folders_by_class(tmp_path: Path, folders: tuple[str, str], classes: list[list[int]]) -> None:
    one, other = folders
    images(tmp_path, f"{other}/a.png", f"{other}/b.png", f"{one}/a.png")
    (tmp_path / other / "note.txt").write_text("no image")
    samples = samples_of(tmp_path, IMAGE, PIXELS)
    assert samples.count == len(list(samples.arrays)) == 3
    assert [each.tolist() for each in samples.labels] == classes
    images(tmp_path, "c.png")
    with pytest.raises(OptionError, match=r"folders of images and, beside them, c\.png"):
        samples_of(tmp_path, IMAGE, PIXELS)
    (tmp_path / "labels.csv").write_text("c.png,5\n")
    assert labels(tmp_path, None, IMAGE, images=PIXELS) == [[5]]


def test_labels_of_batches() -> None:
    entry = Entry("", 0, (Input("given", "x", (3, 2), np.dtype(np.float32)),))
    assert labels({"given": ROWS}, LABELS, entry) == [[3, 1, 4], [1]]
    assert labels({"given": np.stack([ROWS[:3]] * 2)}, [[1, 2, 3], [4, 5, 6]], entry) == [[1, 2, 3], [4, 5, 6]]


OF_FIVE = replace(ENTRY, outputs=((1, 5),))
ONE_HOT = np.eye(5, dtype=np.float32)[LABELS]


@pytest.mark.parametrize(
    "where",
    [
        np.array(LABELS)[:, None],
        np.array(LABELS, np.float32),
        np.array(LABELS, np.float64)[:, None],
        np.array(LABELS, np.uint8),
    ],
)
def test_classes_are_whole_numbers(where: np.ndarray) -> None:
    for entry in (ENTRY, OF_FIVE, replace(ENTRY, outputs=((1, 1), (None, None)))):
        samples = samples_of({"given": ROWS}, entry, labels=where)
        assert [each.tolist() for each in samples.labels] == [[label] for label in LABELS]
        assert default_metrics((), samples.labels) == ("top-1",)


@pytest.mark.parametrize(
    ("where", "outputs", "metric"),
    [
        ([True, False, True, True], ((1, 2),), "top-1"),
        (ONE_HOT, ((1, 5),), "top-1"),
        (ONE_HOT.astype(bool), (), "top-1"),
        (ONE_HOT, ((1, 2), (1, 5)), "mae"),
        (LABELS, ((1, 1),), "mae"),
        (ROWS, ((1, 2),), "mae"),
        (ROWS, ((1, 5), (None, 2)), "mae"),
        (ROWS / 8, (), "mae"),
    ],
)
def test_what_labels_are_follows_from_them_and_the_outputs(where: Any, outputs: Any, metric: str) -> None:
    samples = samples_of({"given": ROWS}, replace(ENTRY, outputs=outputs), labels=where)
    assert default_metrics((), samples.labels) == (metric,)


def test_labels_that_fit_no_output(tmp_path: Path) -> None:
    (tmp_path / "pandas.csv").write_text(",label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(LABELS)))
    for where, what in (
        (tmp_path / "pandas.csv", "labels are 2 numbers a row, and outputs have 5"),
        ([0, 1, np.nan, 2], "labels are 1 number a row, some of them not finite"),
        ([0, 1, np.inf, 2], "some of them not finite"),
        ([0, 1, 1.5, 2], "the number of the class of each sample, rows that are one-hot, or as many numbers"),
        (ONE_HOT[:, :4], "labels are 4 numbers a row"),
    ):
        with pytest.raises(OptionError, match=what):
            labels({"given": ROWS}, where, OF_FIVE)
    assert not samples_of({"given": ROWS, "labels": np.full(4, np.nan)}, OF_FIVE, labelled=False).labels


def test_labels_go_with_their_samples() -> None:
    data = {"given": ROWS, "labels": LABELS}
    first, last = Span.of(data, ENTRY).split(3)
    assert [each.tolist() for each in (*first.labels, *last.labels)] == [[label] for label in LABELS]
    assert [sample["given"].tolist() for sample in last] == [[ROWS[3].tolist()]]
    some = drawn(samples_of(data, ENTRY), 2, 5)
    places = [ROWS.tolist().index(sample["given"][0].tolist()) for sample in some.arrays]
    assert [each.tolist() for each in some.labels] == [[LABELS[place]] for place in places]


def test_labels_that_are_none() -> None:
    for where, what in (
        ([1, 2], "there are 2 labels, and 4 samples"),
        (["cat"] * 4, "labels are numbers"),
        (3, "labels are numbers, an array of one or more dims"),
        ("nowhere", "labels 'nowhere' are neither an array of the data nor a file"),
        (__file__, "not a file of labels"),
    ):
        with pytest.raises(OptionError, match=what):
            labels({"given": ROWS}, where)
    with pytest.raises(OptionError, match="labels need a known number of samples"):
        labels(iter(ROWS), LABELS)
