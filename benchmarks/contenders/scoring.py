"""Loss and accuracy, for the frameworks that leave validation to the user."""

from __future__ import annotations

from typing import Any

import torch


@torch.no_grad()
def score(model: torch.nn.Module, batches: list[Any], loss_fn: Any) -> dict[str, float]:
    model.eval()
    loss, right, count = 0.0, 0, 0
    for inputs, targets in batches:
        predictions = model(inputs)
        loss += loss_fn(predictions, targets).item() * len(targets)
        right += int((predictions.argmax(1) == targets).sum())
        count += len(targets)
    return {"val_loss": loss / count, "accuracy": right / count}
