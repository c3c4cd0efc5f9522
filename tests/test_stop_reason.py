from __future__ import annotations

from hookline.stop_reason import StopReason


def test_a_length_in_iterations_wins() -> None:
    assert StopReason.at_length(2, None).details == {"max_epochs": 2}
    assert StopReason.at_length(2, 10).details == {"max_iters": 10}
    assert StopReason.at_length(2, 0).details == {"max_iters": 0}
    assert StopReason.at_length(2, None).hook == ""


def test_it_prints_the_hook_before_the_message() -> None:
    assert str(StopReason("enough")) == "enough"
    assert str(StopReason("enough", "StopHook")) == "StopHook: enough"


def test_reasons_do_not_share_their_details() -> None:
    first, second = StopReason("a"), StopReason("a")
    assert first == second
    assert first.details == {}
    assert first.details is not second.details
