"""Bad losses: which losses are bad, and when they are known."""

from __future__ import annotations

import math

import torch

from hookline.optim.bad_losses import MIN_LOSSES, IterationLosses, LossReader, find_bad_loss

CALM = [1.0] * MIN_LOSSES


def test_the_first_loss_that_is_not_finite_is_bad():
    bad = find_bad_loss([1.0, math.inf, math.nan], [], None)
    assert bad is not None
    assert (bad.rank, bad.loss, bad.why) == (1, math.inf, "not finite")


def test_a_spike_is_bad_after_enough_losses_only():
    assert find_bad_loss([9.0], CALM[1:], spike=2.0) is None
    bad = find_bad_loss([1.0, 9.0], CALM, spike=2.0)
    assert bad is not None
    assert (bad.rank, bad.loss) == (1, 9.0)


def test_a_loss_at_the_limit_is_good_and_spikes_may_be_ignored():
    assert find_bad_loss([2.0], CALM, spike=2.0) is None
    assert find_bad_loss([9.0], CALM, spike=None) is None


def test_losses_of_a_cpu_are_known_at_once():
    known = LossReader().read(IterationLosses(3, 1, 2, torch.tensor([0.5, 1.5])))
    assert known == IterationLosses(3, 1, 2, [0.5, 1.5])
