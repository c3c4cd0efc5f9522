"""MMEngine's EarlyStoppingHook, which keeps its patience across a resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import original_early_stopping_hook as original
from mmengine.registry import HOOKS


@HOOKS.register_module(force=True)
class EarlyStoppingHook(original.EarlyStoppingHook):  # type: ignore[misc]
    """Stops training when a metric no longer improves; a resumed run continues to count."""

    def state_dict(self) -> dict[str, Any]:
        return {"wait_count": self.wait_count, "best_score": float(self.best_score)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.wait_count = state["wait_count"]
        self.best_score = state["best_score"]
