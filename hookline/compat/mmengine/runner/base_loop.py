"""The base of all loops."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader


class BaseLoop:
    """A loop with a runner and a loader. Custom loops implement `run`.

    Args:
        runner: The runner.
        dataloader: A loader, or its config.
    """

    def __init__(self, runner: Any, dataloader: DataLoader[Any] | dict[str, Any]) -> None:
        self._runner = runner
        if isinstance(dataloader, dict):
            self.dataloader = runner.build_dataloader(
                dataloader, seed=runner.seed, diff_rank_seed=runner.has_seed_per_rank
            )
        else:
            self.dataloader = dataloader

    @property
    def runner(self) -> Any:
        return self._runner

    def run(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement run()")
