from __future__ import annotations

import torch

from hookline.optim.step_hooks import follow_steps


def test_functions_are_called_around_steps_until_they_are_removed() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    weight.grad = torch.ones(1)
    seen = []
    handles = follow_steps(
        optimizer,
        after=lambda: seen.append(("after", weight.item())),
        before=lambda: seen.append(("before", weight.item())),
    )
    optimizer.step()
    assert seen == [("before", 1.0), ("after", 0.0)]
    handles.close()
    optimizer.step()
    assert len(seen) == 2


def test_a_function_before_the_step_is_optional() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    seen = []
    with follow_steps(optimizer, after=lambda: seen.append(1)):
        optimizer.step()
    assert seen == [1]
