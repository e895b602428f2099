"""Entries on disk are whole or missing, within a limit, for several processes at once."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tflq import caches as disk_cache
from tflq.caches import DiskCache
from tflq.errors import FileError

SIZE = 32 + 30
"""Bytes of an entry of 30."""


def only_file(folder: Path) -> Path:
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_a_damaged_entry_is_a_miss(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "deep" / "folder", 1 << 20)
    assert cache.get("key") is None
    cache.put("key", b"content")
    path = only_file(tmp_path)
    whole = path.read_bytes()
    for damaged in (*(whole[:length] for length in range(len(whole))), whole[:-1] + b"x", b"content"):
        path.write_bytes(damaged)
        assert cache.get("key") is None
    cache.put("key", b"content")
    assert (cache.get("key"), cache.get("other")) == (b"content", None)


def test_what_was_not_read_for_the_longest_time_goes(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 3 * SIZE, shelves=1)
    for second, key in enumerate("abc"):
        cache.put(key, bytes(30))
        os.utime(
            next(path for path in tmp_path.rglob("*") if path.stat().st_mtime > 1e6 and path.is_file()), (second,) * 2
        )
    assert cache.get("a") is not None
    cache.put("d", bytes(30))
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]
    cache.put("e", bytes(3 * SIZE))
    assert cache.get("e") is None


def test_trimming_survives_files_that_another_process_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path, 3 * SIZE, shelves=1)
    for key in "abc":
        cache.put(key, bytes(30))
    unlink = os.unlink
    removed = []

    def removed_twice(path: str) -> None:
        removed.append(path)
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", removed_twice)
    cache.put("d", bytes(3 * SIZE - 32))
    assert len(removed) == 3
    assert cache.get("d") is not None


def test_what_cannot_be_kept_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache, "replace_file", full)
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put("key", b"content")
    assert cache.get("key") is None
    assert "a result is not kept: [Errno 28] No space left on device" in caplog.text


def hammer(folder: Path, seed: int) -> None:
    cache = DiskCache(folder, 4000 * 256)
    rng = np.random.default_rng(seed)
    for number in rng.integers(0, 6000, 2000):
        content = bytes([number % 256]) * int(100 + number % 900)
        found = cache.get(f"{number}")
        assert found in (None, content)
        if found is None:
            cache.put(f"{number}", content)


def test_processes_share_a_folder(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        for done in [pool.submit(hammer, tmp_path, seed) for seed in range(4)]:
            done.result()
    sizes = [sum(path.stat().st_size for path in shelf.iterdir()) for shelf in tmp_path.iterdir()]
    assert max(sizes) <= 4000
    assert sum(sizes) > 2000 * len(sizes)


def test_an_entry_in_the_place_of_another_is_a_miss(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put("a", b"content")
    entry = only_file(tmp_path).read_bytes()
    cache.put("b", b"other")
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        path.write_bytes(entry)
    assert (cache.get("a"), cache.get("b")) == (b"content", None)


def test_a_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "deep" / "cache"
    umask = os.umask(0)
    try:
        DiskCache(folder, 1 << 20)
    finally:
        os.umask(umask)
    assert folder.stat().st_mode & 0o777 == 0o700
    for mode in (0o777, 0o770, 0o720, 0o702):
        folder.chmod(mode)
        with pytest.raises(FileError, match=rf"others can write to this folder \(mode {mode:o}\).*chmod 700"):
            DiskCache(folder, 1 << 20)
    folder.chmod(0o755)
    DiskCache(folder, 1 << 20)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(FileError, match="belongs to another user"):
        DiskCache(folder, 1 << 20)
