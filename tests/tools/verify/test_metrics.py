"""Metrics by name, of rows of outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tflq.base.errors import OptionError
from tflq.tools.verify.metrics import NAMES, Score, Scoring, default_metrics, nearness_of, real

F = np.array([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]])
Q = np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2]])


def score(name: str, f: Sequence[np.ndarray], q: Sequence[np.ndarray], labels: Sequence[object] = ()) -> Score:
    scoring = Scoring([name], [np.asarray(each) for each in labels])
    for each, other in zip(f, q, strict=True):
        scoring.add([each], [other])
    (result,) = scoring.scores()
    return result


def test_classes_are_compared_with_labels() -> None:
    found = score("top-1", [F], [Q], [[1, 0]])
    assert (found.value, found.original, found.rows) == (0.5, 1.0, 2)
    assert score("top-1", [F], [Q], [[[0, 1, 0], [1, 0, 0]]]) == found  # one-hot
    assert score("top-1", [F], [Q], [[0, 1]]).value == 0.5  # of equal elements the first is the larger one
    rows = np.arange(10.0)[None]
    assert [score("top-5", [rows], [rows], [[label]]).value for label in (4, 5, 9)] == [0, 1, 1]
    assert score("top-1", [F[:1], F[1:]], [Q[:1], Q[1:]], [[1], [0]]) == found


def test_rows_are_compared_with_the_float_network() -> None:
    assert score("agreement", [F], [Q]).value == 0.5  # a largest one of two
    cosine = [a @ b / math.sqrt(a @ a * (b @ b)) for a, b in zip(F, Q, strict=True)]
    assert score("cosine", [F], [Q]).value == pytest.approx(np.mean(cosine))
    assert score("mae", [F], [Q]).value == pytest.approx(np.abs(F - Q).mean())
    divergences = (F * np.log(F / Q)).sum(axis=1)
    assert score("kl", [F], [Q]).value == pytest.approx(divergences.mean())
    logits = [np.log(each) + 3 for each in (F, Q)]
    assert score("kl", [logits[0]], [logits[1]]).value == pytest.approx(divergences.mean())
    for name in ("agreement", "cosine", "kl", "mae"):
        assert score(name, [F], [F]).value == pytest.approx(score(name, [F], [F]).original)


def test_labels_of_the_outputs_size_are_the_reference() -> None:
    found = score("mae", [F], [Q], [F + 1])
    assert found.original == pytest.approx(1)
    assert found.value == pytest.approx(np.abs(F + 1 - Q).mean())
    assert score("mae", [F[:, :1]], [Q[:, :1]], [[0.5, 1.5]]).original == pytest.approx(0.7)
    assert score("mae", [F], [Q], [[1, 0]]) == score("mae", [F], [Q])  # classes


def test_a_batch_that_is_filled_up_counts_its_rows_with_labels() -> None:
    assert score("top-1", [F, F], [F, F], [[1, 0], [1]]).rows == 3


def test_zeros_have_a_cosine() -> None:
    zeros = np.zeros((1, 3))
    assert [score("cosine", [zeros], [each]).value for each in (zeros, F[:1])] == [1, 0]


def test_what_does_not_fit_is_refused() -> None:
    for labels in ([[1, 3]], [[-1, 0]], [[0.5, 0]]):
        with pytest.raises(OptionError, match=r"the label of sample 0 is .*, and the outputs have classes 0 to 2"):
            score("top-1", [F], [Q], labels)
    with pytest.raises(OptionError, match="top-1 needs labels"):
        Scoring(["top-1"])
    with pytest.raises(OptionError, match="'top-2'"):
        Scoring(["top-2"])
    assert not Scoring(["top-1"], [np.array([1])]).scores()


def test_the_default_follows_from_labels() -> None:
    assert default_metrics((), ()) == ()
    assert default_metrics((), [np.array([1])]) == ("top-1",)
    assert default_metrics((), [np.array([[0.5, 1]])]) == ("mae",)
    assert default_metrics(["kl"], [np.array([1])]) == ("kl",)


@pytest.mark.parametrize("name", NAMES)
def test_nearness_is_the_more_the_better(name: str) -> None:
    near, far = (nearness_of(score(name, [F], [each], [[1, 0]])) for each in (F, Q[::-1]))
    assert near >= far


def test_stored_integers_are_reals() -> None:
    described = {"scales": [0.5], "zero_points": [-2]}
    assert real(np.array([0, 2], np.int8), described).tolist() == [1, 2]
    assert real(np.array([3], np.int32), {"scales": [], "zero_points": []}).tolist() == [3]
