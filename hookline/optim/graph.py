"""Which parameters a loss depends on."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def outside_graph(loss: torch.Tensor, named: Iterable[tuple[str, torch.nn.Parameter]]) -> list[str]:
    """The names of the trainable parameters that the loss was not computed from."""
    used, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)  # only the nodes that add up a leaf's gradient have one
        if leaf is not None:
            used.add(id(leaf))
        waiting.extend(next_node for next_node, _ in node.next_functions)
    return [name for name, param in named if param.requires_grad and id(param) not in used]


def without_gradient(named: Iterable[tuple[str, torch.nn.Parameter]]) -> list[str]:
    """The names of the trainable parameters that got no gradient."""
    return [name for name, param in named if param.requires_grad and param.grad is None]
