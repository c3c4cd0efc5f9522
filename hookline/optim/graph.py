"""Trainable parameters that a loss does not depend on, or that have no gradient."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def outside_graph(loss: torch.Tensor, named: Iterable[tuple[str, torch.nn.Parameter]]) -> list[str]:
    """Return the names of trainable parameters that the loss was not computed from."""
    used = set()
    seen = set()
    waiting = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        # Only the nodes that accumulate the gradient of a leaf have a `variable`.
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            used.add(id(leaf))
        # A loss with known gradients lists the leaves that they belong to.
        used.update(id(each) for each in getattr(node, "known_leaves", ()))
        for next_node, _ in node.next_functions:
            waiting.append(next_node)
    return [name for name, param in named if param.requires_grad and id(param) not in used]


def without_gradient(named: Iterable[tuple[str, torch.nn.Parameter]]) -> list[str]:
    """Return the names of trainable parameters without a gradient."""
    return [name for name, param in named if param.requires_grad and param.grad is None]
