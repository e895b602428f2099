"""The collector of cycles is paused while a model is converted, and is afterwards as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

import tflq
from tflq.collector import collector_paused


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_it_is_paused_within_and_goes_on_after_an_error() -> None:
    @collector_paused()
    def failing() -> None:
        assert not gc.isenabled()
        raise ValueError("within")

    with pytest.raises(ValueError, match="within"):
        failing()
    assert gc.isenabled()


def test_one_that_is_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_the_last_of_several_threads_sets_it_going_again() -> None:
    both_in, one_out = Barrier(2, timeout=60), Barrier(2, timeout=60)
    seen: list[bool] = []

    def first() -> None:
        with collector_paused():
            both_in.wait()
        one_out.wait()

    def second() -> None:
        with collector_paused():
            both_in.wait()
            one_out.wait()
            seen.append(gc.isenabled())

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False]
    assert gc.isenabled()


def test_a_refused_conversion_sets_it_going_again() -> None:
    with pytest.raises(tflq.TflqError):
        tflq.convert(b"no model")
    assert gc.isenabled()
