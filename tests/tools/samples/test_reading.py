"""Samples from files and from programs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.base.errors import FileError, OptionError
from tflq.tools.samples.files import Images
from tflq.tools.samples.inputs import Entry, Input
from tflq.tools.samples.reading import Batches, drawn, samples_of


def entry(*inputs: Input, key: str = "", signatures: tuple[str, ...] = ()) -> Entry:
    return Entry(key, 0, inputs, signatures)


X = Input("given", "x", (None, 2), np.dtype(np.float32))
Y = Input("other", "y", (3,), np.dtype(np.int32))
ONE, TWO = entry(X), entry(X, Y)
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
OTHERS = np.arange(12, dtype=np.int32).reshape(4, 3)


def npz(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


def lists(data: Any, entry: Entry = ONE, **options: Any) -> list[dict[str, list[Any]]]:
    samples = samples_of(data, entry, **options)
    found = [{name: array.tolist() for name, array in sample.items()} for sample in samples.arrays]
    assert samples.count in (None, len(found))
    return found


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_is_read_row_by_row(tmp_path: Path, save: Callable[..., None]) -> None:
    save(tmp_path / "data.npz", given=ROWS, y=OTHERS)
    found = lists(tmp_path / "data.npz", TWO)
    assert found == [
        {"given": [row], "other": other} for row, other in zip(ROWS.tolist(), OTHERS.tolist(), strict=True)
    ]


def test_what_files_hold_is_read_at_its_places_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for place, row in enumerate(ROWS):
        np.save(tmp_path / "folder" / f"{place}.npy", row)
    for data in (npz(tmp_path / "data.npz", given=ROWS), tmp_path / "folder"):
        batches = Batches(samples_of(data, ONE))
        found = [pickle.loads(pickle.dumps(batches.following(3))) for _ in range(3)]  # noqa: S301
        assert [len(batch) for batch in found] == [3, 1, 0]
        assert [sample["given"].tolist() for batch in found for sample in batch] == [[row] for row in ROWS.tolist()]
        assert [s["given"].tolist() for s in drawn(samples_of(data, ONE), 2, 1).arrays] == [
            s["given"].tolist() for s in drawn(samples_of(list(ROWS), ONE), 2, 1).arrays
        ]


def test_a_file_that_ends_early_is_named(tmp_path: Path) -> None:
    found = samples_of(npz(tmp_path / "data.npz", given=ROWS), ONE)
    (tmp_path / "data.npz").write_bytes((tmp_path / "data.npz").read_bytes()[:-200])
    with pytest.raises(FileError, match=r"'given\.npy' ends early, in row \d"):
        list(found.arrays)


def test_a_single_array_may_have_any_name_and_the_first_dim_of_a_sample(tmp_path: Path) -> None:
    wanted = [{"given": [row]} for row in ROWS.tolist()]
    assert lists(npz(tmp_path / "a.npz", arr_0=ROWS)) == wanted
    assert lists(npz(tmp_path / "b.npz", given=ROWS[:, None])) == wanted


def test_folders_hold_a_sample_in_each_file_in_the_order_of_names(tmp_path: Path) -> None:
    wanted = [{"given": [row]} for row in ROWS.tolist()]
    for kind in ("npy", "npz"):
        (tmp_path / kind).mkdir()
    for place in (3, 1, 0, 2):
        np.save(tmp_path / "npy" / f"{place}.npy", ROWS[place])
        npz(tmp_path / "npz" / f"{place}.npz", x=ROWS[place][None])
    assert lists(tmp_path / "npy") == lists(tmp_path / "npz") == wanted


def test_iterables_give_arrays_mappings_or_sequences() -> None:
    wanted = [{"given": [row]} for row in ROWS.tolist()]
    assert lists(list(ROWS)) == lists({"given": row} for row in ROWS) == lists(iter(ROWS)) == wanted
    assert len(lists(zip(ROWS, OTHERS, strict=True), TWO)) == 4


def test_images_are_resized_and_scaled_as_stated(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    for place, level in enumerate((0, 255)):
        image.new("L", (5, 7), level).save(tmp_path / f"{place}.png")
    pictures = entry(Input("given", "x", (1, 2, 3, 3), np.dtype(np.float32)))
    found = lists(tmp_path, pictures, images=Images((127.5,), (1 / 127.5,)))
    assert [np.unique(sample["given"]).tolist() for sample in found] == [[-1.0], [1.0]]
    with pytest.raises(OptionError, match="need a mean and a scale"):
        lists(tmp_path, pictures)
    with pytest.raises(OptionError, match="images are for a model of one input"):
        lists(tmp_path, images=Images((0,), (1,)))


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"given": ROWS, "other": OTHERS[:3]}, "not as many samples of each input: 4 of 'given', 3 of 'other'"),
        ({"given": ROWS}, "has no array 'other', which is an input"),
        ({"given": ROWS, "other": OTHERS, "more": ROWS}, "has 'more', which is not an input"),
        ({"given": ROWS.astype(np.float64), "other": OTHERS}, "'given' is float32, and the sample of row 0 .* float64"),
        ({"given": ROWS[:, :1], "other": OTHERS}, r"'given' has the shape \(\?, 2\), and the sample of row 0"),
        ({"given": np.float32(1), "other": OTHERS}, "no first dim of samples"),
        ({"given": np.asfortranarray(ROWS), "other": OTHERS}, "no first dim of samples"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, arrays: dict[str, np.ndarray], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        lists(npz(tmp_path / "data.npz", **arrays), TWO)


def test_files_that_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(b"PK not a zip")
    with pytest.raises(FileError, match=r"not a readable \.npz file: File is not a zip file"):
        lists(tmp_path / "data.npz")
    (tmp_path / "data.txt").write_text("")
    with pytest.raises(OptionError, match=r"not a file of samples; give an \.npz"):
        lists(tmp_path / "data.txt")
    with pytest.raises(OptionError, match=r"holds \.npz, \.txt files"):
        lists(tmp_path)
    with pytest.raises(OptionError, match="data=3: expected a path"):
        lists(3)


def test_samples_are_the_first_ones_or_drawn() -> None:
    data = samples_of(list(ROWS), ONE)
    assert [s["given"].tolist() for s in drawn(data, 2, None).arrays] == [[row] for row in ROWS[:2].tolist()]
    draws = [[s["given"][0, 0] for s in drawn(samples_of(list(ROWS), ONE), 2, seed).arrays] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] == sorted(draws[0])
    assert draws[0] != draws[2]
    assert len(list(drawn(samples_of(iter(ROWS), ONE), 2, None).arrays)) == 2
    with pytest.raises(OptionError, match="a known number of samples"):
        drawn(samples_of(iter(ROWS), ONE), 2, 1)


def batch(size: int | None) -> Input:
    return Input("x", "x", (size, 2), np.dtype(np.float32))


@pytest.mark.parametrize(
    ("size", "shape", "runs"),
    [
        (1, (4, 2), [[0], [1], [2], [3]]),
        (1, (4, 1, 2), [[0], [1], [2], [3]]),
        (None, (4, 2), [[0], [1], [2], [3]]),
        (4, (4, 2), [[0, 1, 2, 3]]),
        (2, (4, 2), [[0, 1], [2, 3]]),
        (2, (2, 2, 2), [[0, 1], [2, 3]]),
        (3, (4, 2), [[0, 1, 2], [3, 3, 3]]),
    ],
)
@pytest.mark.parametrize("kind", ["npz", "compressed", "npy", "mapping", "folder", "rows"])
def test_rows_are_samples_whatever_the_batch_is(
    kind: str, size: int | None, shape: tuple[int, ...], runs: list[list[int]], tmp_path: Path
) -> None:
    array = ROWS.reshape(shape)
    data: Any = {"x": array}
    if kind in ("npz", "compressed"):
        {"npz": np.savez, "compressed": np.savez_compressed}[kind](tmp_path / "x.npz", x=array)
        data = tmp_path / "x.npz"
    elif kind == "npy":
        np.save(data := tmp_path / "x.npy", array)
    elif kind == "folder":
        for place, row in enumerate(array):
            np.save(tmp_path / f"{place}.npy", row)
        data = tmp_path
    elif kind == "rows":
        data = ([row] for row in array)
    samples = samples_of(data, entry(batch(size)))
    arrays = [sample["x"] for sample in samples.arrays]
    assert samples.count in (None, len(runs))
    assert [a.tolist() for a in arrays] == [ROWS[run].tolist() for run in runs]


def test_arrays_of_the_inputs_shapes_are_one_sample() -> None:
    fixed = entry(Input("x", "x", (1, 2), np.dtype(np.float32)), Input("y", "y", (3,), np.dtype(np.int32)))
    assert lists({"x": ROWS[:1], "y": OTHERS[0]}, fixed) == [{"x": ROWS[:1].tolist(), "y": OTHERS[0].tolist()}]


def test_rows_of_one_input_cannot_fill_a_batch_beside_a_whole_one() -> None:
    with pytest.raises(OptionError, match="rows do not fill the batches of the inputs alike: 2 of 'x'"):
        lists({"x": ROWS, "other": OTHERS}, entry(batch(2), Y))


def test_a_function_lists_of_one_array_and_pairs_with_a_signature() -> None:
    wanted = [{"given": [row]} for row in ROWS.tolist()]
    assert lists(lambda: ([row[None]] for row in ROWS)) == lists([[row] for row in ROWS]) == wanted
    pairs = [pair for row in ROWS for pair in (("a", {"given": row}), ("b", {"other": row}))]
    assert lists(pairs, entry(X, key="a", signatures=("a", "b"))) == wanted
    by_key = {"a": [{"given": row} for row in ROWS], "b": [{"other": row} for row in ROWS]}
    assert lists(by_key, entry(X, key="a", signatures=("a", "b"))) == wanted
    with pytest.raises(OptionError, match=r"place 1 is for signature 'b', which the model has not; .*: 'a'"):
        lists(pairs, entry(X, key="a", signatures=("a",)))


def test_arrays_of_several_signatures_have_their_keys_before_the_names() -> None:
    both = {"a/given": ROWS, "b/given": -ROWS}
    for key, sign in (("a", 1), ("b", -1)):
        found = lists(both, entry(X, key=key, signatures=("a", "b")))
        assert found == [{"given": [row]} for row in (sign * ROWS).tolist()]


def test_samples_in_a_mapping_by_signature() -> None:
    both = {"a": ROWS, "b": [{"given": -row} for row in ROWS]}
    for key, sign in (("a", 1), ("b", -1)):
        found = lists(both, entry(X, key=key, signatures=("a", "b")))
        assert found == [{"given": [row]} for row in (sign * ROWS).tolist()]
    with pytest.raises(OptionError, match="there are no samples of signature 'b', and some of 'a'"):
        lists({"a": ROWS}, entry(X, key="b", signatures=("a", "b")))
    with pytest.raises(OptionError, match="there are samples of signature 'c', which the model has not"):
        lists({"a": ROWS, "c": ROWS}, entry(X, key="a", signatures=("a", "b")))
    with pytest.raises(OptionError, match="the data has arrays of signature 'a', and the first subgraph runs"):
        lists({"a": ROWS}, entry(X, signatures=("a", "b")))


def test_floats_for_quantized_inputs_are_quantized() -> None:
    quantized = Input("x", "x", (1, 4), np.dtype(np.int8), 0.5, 3)
    assert lists([np.asarray([0, 0.25, -0.25, 1e9], np.float32)], entry(quantized)) == [{"x": [[3, 4, 2, 127]]}]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ([ROWS[0], ROWS[0][:1]], r"input 'given' has the shape \(\?, 2\), and the sample of place 1 \(1,\)"),
        ([ROWS[0].astype(np.int16)], "'given' is float32, and the sample of place 0 is int16"),
        ([{"x": ROWS[0], "z": ROWS[0]}], "the sample of place 0 has 'z', which is not an input"),
        ([{"a": ROWS[0], "z": ROWS[0]}], "the sample of place 0 has no array 'given'"),
        ([[ROWS[0], ROWS[0]]], "the sample of place 0 has 2 arrays, and the model 1 inputs; .* 'given'"),
        ({"x": OTHERS}, r"the sample of row 0 of the arrays \(3,\)"),
    ],
)
def test_a_sample_that_does_not_fit_is_named(data: Any, what: str) -> None:
    with pytest.raises(OptionError, match=what):
        lists(data)


def test_an_archive_of_places_before_its_begin_is_not_readable(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", x=np.zeros((4, 3), np.float32))
    data = bytearray(path.read_bytes())
    data[-6:-2] = (len(data) * 2).to_bytes(4, "little")  # offset of the central directory
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"a\.npz: not a readable \.npz file"):
        samples_of(path, ONE)


@pytest.mark.parametrize(("mean", "scale"), [(1, None), (None, 1), ((1, 2), 1), ("a", 1), (float("nan"), 1)])
def test_the_mean_and_the_scale_of_images_are_numbers(mean: Any, scale: Any) -> None:
    with pytest.raises(OptionError, match=r"of images is .*: it must be one finite number, or three"):
        Images.of(mean, scale)
    assert Images.of(None, None) is None
    assert Images.of((1, 2, 3), 4) == Images((1.0, 2.0, 3.0), (4.0,))


def test_floats_of_a_quantized_input_are_numbers() -> None:
    quantized = Input("given", "x", (3,), np.dtype(np.int8), 0.5, 1)
    assert quantized.converted(np.array([np.inf, -np.inf, 0.25], np.float32), "row 0").tolist() == [127, -128, 2]
    with pytest.raises(OptionError, match="the sample of row 0 has NaN"):
        quantized.converted(np.array([0, 1, np.nan], np.float32), "row 0")
