"""The base of all loops."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader


class BaseLoop:
    """A loop has a runner and a loader; a custom one implements `run`."""

    def __init__(self, runner: Any, dataloader: DataLoader[Any] | dict[str, Any]) -> None:
        self._runner = runner
        if isinstance(dataloader, dict):
            apart = runner._randomness_cfg.get("diff_rank_seed", False)
            self.dataloader = runner.build_dataloader(dataloader, seed=runner.seed, diff_rank_seed=apart)
        else:
            self.dataloader = dataloader

    @property
    def runner(self) -> Any:
        return self._runner

    def run(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement run()")
