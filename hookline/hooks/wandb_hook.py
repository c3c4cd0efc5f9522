"""Log to Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.wandb import WandbWriter
from hookline.hooks.bases.tracker import TrackerHook
from hookline.secrets import mask_secrets


@HOOKS.register("WandbLoggerHook")
@HOOKS.register()
@dataclass
class WandbHook(TrackerHook):
    """Log to Weights & Biases. A resumed run continues the same W&B run.

    Without an account or a server, the run is recorded offline, and the log ends with the command
    that uploads it.

    Args:
        project: Name of the W&B project.
        name: Name of the W&B run and of the hook.
        config: Values to log in addition to the config of the run.
        log_model: Upload the last and the best checkpoints.
        interval: Number of iterations between two reports of scalars.
        log_code: Upload the Python files of the working directory.
        init_kwargs: Arguments for `wandb.init`.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: WandbHook, project: digits, name: cnn, log_model: true}
        ```
    """

    project: str | None = None
    name: str | None = None  # type: ignore[assignment]
    config: dict[str, Any] | None = None
    log_model: bool = False
    interval: int = 50
    log_code: bool = False
    init_kwargs: dict[str, Any] | None = None
    run_id: str = state("")

    module = "wandb"
    extra = "wandb"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Keep the given name: registration names a hook without one after its class.
        self._title = self.name
        self.name = self.name or ""

    def open_writer(self, runner: BaseRunner) -> WandbWriter:
        return WandbWriter(
            self.project, self._title, self.run_id, runner.work_dir, self.log_code, self.init_kwargs
        )

    def config_of(self, runner: BaseRunner) -> Mapping[str, Any]:
        return {**super().config_of(runner), **mask_secrets(self.config or {})}
