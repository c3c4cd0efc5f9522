"""Perplexity and exact match."""

from __future__ import annotations

import math

import pytest
import torch

from hookline.errors import ConfigError
from hookline.metrics import build_metric


def scores_and_labels(rows: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, 7, 5, generator=generator)
    labels = torch.randint(5, (rows, 7), generator=generator)
    labels[0, 3:] = -100
    labels[4, :6] = -100
    return scores, labels


@pytest.mark.parametrize("shift", [True, False])
def test_perplexity_counts_every_token_once_whatever_the_batches(shift):
    scores, labels = scores_and_labels()
    terms = []
    for row in range(len(labels)):
        for place in range(labels.shape[1]):
            source = place - 1 if shift else place
            if labels[row, place] != -100 and source >= 0:
                chances = scores[row, source].double().softmax(0)
                terms.append(-math.log(chances[labels[row, place]]))
    expected = math.exp(sum(terms) / len(terms))
    for sizes in ([6], [1, 5], [2, 2, 2]):
        metric = build_metric({"type": "perplexity", "shift": shift})
        for part in zip(scores.split(sizes), labels.split(sizes), strict=True):
            metric.update(*part)
        assert float(metric.compute()) == pytest.approx(expected, rel=1e-6)


def test_a_batch_without_labels_changes_nothing():
    scores, labels = scores_and_labels()
    metric = build_metric("perplexity")
    metric.update(scores, labels)
    before = metric.compute()
    metric.update(scores, torch.full_like(labels, -100))
    assert metric.compute() == before


def test_scores_of_classes_have_no_perplexity():
    with pytest.raises(ConfigError):
        build_metric("perplexity").update(torch.zeros(3, 2), torch.zeros(3, dtype=torch.long))


def test_exact_match_ignores_only_spaces_around_a_text():
    metric = build_metric("exact_match")
    metric.update(["a b", " c\n", "d"], ["a b", "c", "D"])
    metric.update(["e"], ["f"])
    assert float(metric.compute()) == 0.5


def test_scores_cannot_match_texts():
    with pytest.raises(ConfigError):
        build_metric("exact_match").update(torch.zeros(3, 2), torch.zeros(3))
