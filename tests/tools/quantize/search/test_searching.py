"""The search, on figures that a function gives in place of networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from support.search_nets import CHOICES, KINDS, chain, rows

from tflq.base.errors import OptionError
from tflq.ir.module import Module
from tflq.tools.quantize.building import Network
from tflq.tools.quantize.recipe import Choices, Rule, Settings
from tflq.tools.quantize.report import QuantizedRow
from tflq.tools.quantize.search.bounds import Bounds, Figures
from tflq.tools.quantize.search.moves import Operators
from tflq.tools.quantize.search.outcome import BACK, Search
from tflq.tools.quantize.search.searching import searched, trials_of


def search(
    module: Module, figures: Callable[[Mapping[str, str]], Figures], bounds: Bounds
) -> tuple[tuple[Rule, ...], Search, list[Mapping[str, str]]]:
    """The search of a chain, and the states that were tried: of each result the scheme that rules give it."""
    tried: list[Mapping[str, str]] = []

    def build(rules: Sequence[Rule]) -> Network:
        chosen = Choices(module, rules, Settings("int8"))
        each = {op.result.name: chosen.of(op.results).scheme for op in module.main.ops}
        tried.append({name: scheme for name, scheme in each.items() if scheme != "int8"})
        outcome = [QuantizedRow("", name, quantized=scheme != "float") for name, scheme in each.items()]
        return Network(module, tuple(outcome), b"", ())

    operators = Operators(module, rows(module), tuple(CHOICES))
    rules, result = searched(operators, CHOICES, build, lambda _: figures(tried[-1]), bounds)
    return rules, result, tried


def by_noise(noise: Mapping[str, float], bytes: Mapping[str, int] = {}) -> Callable[[Mapping[str, str]], Figures]:
    """Figures where each operator makes noise of its own, a thousandth with 16 bits, and costs bytes in float."""

    def figures(state: Mapping[str, str]) -> Figures:
        part = {"float": 0.0, "int16x8": 1e-3}
        total = sum(part.get(state.get(name, ""), 1.0) * each for name, each in noise.items())
        ratio = math.inf if total == 0 else -10 * math.log10(total)
        return Figures(ratio, ratio, 1000 + sum(bytes.get(name, 0) for name, what in state.items() if what == "float"))

    return figures


NOISE = dict(zip("abcdefgh", (1e-5, 1e-5, 1e-5, 1e-5, 1e-2, 1e-5, 1e-1, 1e-5), strict=True))


def test_the_operators_that_make_the_noise_are_changed_alone() -> None:
    module = chain(KINDS)
    rules, result, _ = search(module, by_noise(NOISE), Bounds(decibels=35))
    assert result.reached
    assert result.after.decibels >= 35
    chosen = Choices(module, rules, Settings("int8"))
    assert [op.result.name for op in module.main.ops if chosen.of(op.results).scheme != "int8"] == ["e", "g"]


def test_what_holds_already_changes_nothing() -> None:
    rules, result, tried = search(chain(KINDS), by_noise(NOISE), Bounds(decibels=5))
    assert (rules, result.steps, result.trials, len(tried)) == ((), (), 1, 1)
    assert result.before == result.after


def test_bytes_stay_within_their_bound() -> None:
    """The operator that makes the noise is too large in float: it gets 16 bits."""
    figures = by_noise(NOISE, {"g": 500, "e": 10})
    rules, result, _ = search(chain(KINDS), figures, Bounds(decibels=35, bytes=1100))
    assert result.after.bytes <= 1100
    assert dict(rules[0].what) == {"scheme": "int16x8"}
    with pytest.raises(OptionError, match=r"at least 60 dB, at most 1100 bytes; the nearest of .* has 4[0-9]"):
        search(chain(KINDS), figures, Bounds(decibels=60, bytes=1100))


def test_without_a_bound_of_fidelity_the_nearest_within_the_others_is_taken() -> None:
    figures = by_noise(NOISE, dict.fromkeys("abcdefgh", 100))
    _, result, _ = search(chain(KINDS), figures, Bounds(bytes=1200))
    assert result.reached
    assert result.after.decibels > result.before.decibels + 20
    assert result.after.bytes <= 1200


@pytest.mark.parametrize("bounds", [Bounds(milliseconds=100), Bounds(bytes=10**6)], ids=str)
def test_what_is_far_within_its_bound_has_no_price(bounds: Bounds) -> None:
    """Each operator that gets 16 bits is worth 1 dB, for as many bytes and as much time as all had before. In float
    it is faster, for nothing."""

    def figures(state: Mapping[str, str]) -> Figures:
        wide = sum(scheme == "int16x8" for scheme in state.values())
        return Figures(30 + wide, 30 + wide, 1000 * (1 + wide), 0.01 * (1 + wide) - 0.001 * len(state))

    _, result, _ = search(chain(KINDS), figures, bounds)
    assert result.after.decibels == 38
    assert "float" not in [step.scheme for step in result.steps]


def test_what_is_over_a_bound_comes_within_it_first() -> None:
    def figures(state: Mapping[str, str]) -> Figures:
        return Figures(30 - len(state), 30 - len(state), 1000, 5.0 - 0.5 * len(state))

    _, result, _ = search(chain(KINDS), figures, Bounds(milliseconds=4.0))
    assert result.before.milliseconds == 5
    assert result.after.milliseconds <= 4


def test_a_move_that_is_enough_is_made_at_any_price() -> None:
    """What is missing is worth less than the bytes that it costs: of several the cheapest is made."""

    def figures(state: Mapping[str, str]) -> Figures:
        return Figures(40 if state else 30, 40 if state else 30, 1000 + 500 * len(state) + 1000 * ("e" in state))

    _, result, _ = search(chain(KINDS), figures, Bounds(decibels=30.1))
    assert result.after.decibels == 40
    assert result.steps[0].tensors == ("a", "c")


def test_small_gains_at_a_high_price_add_up() -> None:
    def figures(state: Mapping[str, str]) -> Figures:
        return Figures(30 + 0.1 * len(state), 30 + 0.1 * len(state), 1000 + 100 * len(state) ** 2)

    _, result, _ = search(chain(KINDS), figures, Bounds(decibels=30.4))
    assert result.after.decibels >= 30.4


def test_what_is_hardly_over_a_bound_comes_within_it_at_any_price() -> None:
    """The time is a ten-thousandth too long, and what is enough costs more bytes than that is worth."""

    def figures(state: Mapping[str, str]) -> Figures:
        return Figures(30, 30, 1000 + 1000 * len(state), 1.0 if state else 1.0001)

    _, result, _ = search(chain(KINDS), figures, Bounds(milliseconds=1.0))
    assert result.after.milliseconds <= 1


def test_a_network_in_float_is_no_result() -> None:
    with pytest.raises(OptionError, match="no network with an operator quantized has at least 300 dB"):
        search(chain(KINDS), by_noise(NOISE), Bounds(decibels=300))


def test_errors_that_cancel_are_changed_together() -> None:
    """Alone each operator in float is worse, since the error of another has cancelled its own."""

    def figures(state: Mapping[str, str]) -> Figures:
        ratio = 40.0 if len(state) >= 4 else 20.0 - len(state)
        return Figures(ratio, ratio, 1000)

    _, result, _ = search(chain(KINDS), figures, Bounds(decibels=30))
    assert result.after.decibels == 40


@pytest.mark.parametrize("after", [3, 9, 20])
def test_an_interrupted_search_gives_the_best_so_far(after: int) -> None:
    module, figures = chain(KINDS), by_noise(NOISE)
    seen: list[Figures] = []

    def until(state: Mapping[str, str]) -> Figures:
        if len(seen) == after:
            raise KeyboardInterrupt
        seen.append(figures(state))
        return seen[-1]

    rules, result, _ = search(module, until, Bounds(decibels=200))
    assert result.interrupted
    assert not result.reached
    assert result.after.decibels > result.before.decibels
    assert rules
    assert "the best so far" in result.warnings()[0]
    assert f"interrupted after {after} networks" in result.lines()[0]


def test_an_interruption_before_the_first_figures_is_one() -> None:
    def interrupted(_: object) -> Figures:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(chain(KINDS), interrupted, Bounds(decibels=20))


def test_networks_are_counted() -> None:
    """A search that gains next to nothing ends, and no state is tried twice."""
    rng = np.random.default_rng(0)
    noise = dict(zip("abcdefghijklmnopqrst", rng.uniform(1, 2, 20), strict=True))
    with pytest.raises(OptionError):
        search(chain(KINDS * 2 + KINDS[:4]), by_noise(noise), Bounds(decibels=100))
    _, result, tried = search(chain(KINDS * 2 + KINDS[:4]), by_noise(noise), Bounds(decibels=1))
    assert len({frozenset(state.items()) for state in tried}) == len(tried) == result.trials <= trials_of(20)
    assert [trials_of(count) for count in (1, 100, 1000)] == [200, 150, 40]


def test_what_is_not_needed_is_changed_back() -> None:
    """Of a kind that is changed together one operator is enough."""
    kinds = ("tanh",) * 7 + ("relu",)
    noise = dict.fromkeys("abcdefgh", 1e-6) | {"d": 1e-2}
    rules, result, _ = search(chain(kinds), by_noise(noise), Bounds(decibels=45))
    assert result.steps[-1].scheme in (BACK, "float", "int16x8")
    assert [(rule.name, rule.operator) for rule in rules] == [("re:d", "")]
