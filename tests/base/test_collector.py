"""The collector of cycles is rare while a model is converted, never off, and afterwards as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

import tflq
from tflq.base.collector import RARELY, collected_rarely, expect

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_it_is_rare_within_and_as_before_after_an_error() -> None:
    @collected_rarely()
    def failing() -> None:
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 10 * USUAL[0]
        raise ValueError("within")

    with pytest.raises(ValueError, match="within"):
        failing()
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [(0, 10, 10), (1_000_000, 10, 10)])
def test_a_program_that_collects_more_rarely_goes_on_so(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with collected_rarely():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_a_program_sets_meanwhile_stays() -> None:
    with collected_rarely():
        gc.set_threshold(5000, 5, 5)
    assert gc.get_threshold() == (5000, 5, 5)


def test_a_large_network_is_searched_once_it_is_there() -> None:
    with collected_rarely():
        expect(10)
        assert gc.get_threshold()[0] == RARELY
        expect(1_000_000)
        assert gc.get_threshold()[0] > 100 * RARELY
        expect(1 << 40)
        expect(10)
        assert gc.get_threshold()[0] == (1 << 31) - 1
    assert gc.get_threshold() == USUAL
    expect(1_000_000)
    assert gc.get_threshold() == USUAL
    with collected_rarely():
        gc.set_threshold(5000, 5, 5)
        expect(1_000_000)
        assert gc.get_threshold() == (5000, 5, 5)


def test_the_last_of_several_threads_sets_it_back() -> None:
    both_in, one_out = Barrier(2, timeout=60), Barrier(2, timeout=60)
    seen: list[int] = []

    def first() -> None:
        with collected_rarely():
            both_in.wait()
        one_out.wait()

    def second() -> None:
        with collected_rarely():
            both_in.wait()
            one_out.wait()
            seen.append(gc.get_threshold()[0])

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen[0] > USUAL[0]
    assert gc.get_threshold() == USUAL


def test_garbage_is_collected_while_conversions_overlap() -> None:
    """As where threads convert without end: one is always within."""
    collected: list[int] = []
    gc.callbacks.append(lambda phase, info: collected.append(info["collected"]) if phase == "stop" else None)
    try:
        with collected_rarely():
            for _ in range(3 * RARELY):
                circle: list[object] = []
                circle.append(circle)
    finally:
        gc.callbacks.pop()
    assert sum(collected) > RARELY


def test_a_refused_conversion_sets_it_back() -> None:
    with pytest.raises(tflq.TflqError):
        tflq.convert(b"no model")
    assert gc.get_threshold() == USUAL
