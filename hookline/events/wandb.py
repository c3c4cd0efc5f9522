"""The writer for Weights & Biases."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.secrets import mask_text

log = logging.getLogger("hookline")

STEP = "iteration"  # the x axis of charts and images
INIT_TIMEOUT = 30  # seconds; the default of the library is 90


@WRITERS.register("wandb")
class WandbWriter(TrackerWriter):
    """A writer to a W&B run, or to an offline run without an account or a server."""

    def __init__(
        self,
        project: str | None = None,
        name: str | None = None,
        run_id: str | None = None,
        dir: str | Path = "",
        log_code: bool = False,
        init_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._wandb = require("wandb", "wandb")
        Path(dir or ".").mkdir(parents=True, exist_ok=True)
        wanted = {
            "project": project,
            "name": name,
            "id": run_id,
            "resume": "allow",
            "dir": str(dir or "."),
        }
        self._init(
            {
                key: value
                for key, value in {**wanted, **(init_kwargs or {})}.items()
                if value is not None
            }
        )
        if log_code:
            self._run.log_code()

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        self._log(dict(scalars), step)

    def write(self, record: Record) -> None:
        record = portable(record)
        name, value = record.name, record.value
        if record.kind == "image":
            self._log({name: self._wandb.Image(value)}, record.step)
        elif record.kind == "histogram":
            self._log(
                {name: self._wandb.Histogram(np_histogram=(value.counts, value.edges))}, record.step
            )
        elif record.kind == "text":
            self._log(
                {f"text/{name}": self._wandb.Html(f"<pre>{html.escape(value)}</pre>")}, record.step
            )
        else:
            kind = "model" if name.startswith("checkpoints/") else "file"
            artifact = self._wandb.Artifact(
                f"{self._run.id}-{re.sub(r'[^0-9A-Za-z_.-]', '-', name)}", type=kind
            )
            artifact.add_file(str(value))
            self._run.log_artifact(artifact)

    def write_config(self, config: Mapping[str, Any]) -> None:
        self._run.config.update(dict(config), allow_val_change=True)

    def missing(self) -> str:
        if not self._offline:
            return ""
        return f"the run is only on this disk, `wandb sync {self._folder}` uploads it"

    def close(self) -> None:
        self._run.finish(exit_code=1 if self.failed else 0)

    def _log(self, values: dict[str, Any], iteration: int) -> None:
        """Log a row with its iteration: W&B rejects past steps, and images are drawn late."""
        self._run.log({**values, STEP: iteration})

    def _init(self, wanted: dict[str, Any]) -> None:
        wandb = self._wandb
        settings = wandb.Settings(init_timeout=INIT_TIMEOUT, login_timeout=INIT_TIMEOUT)
        try:
            self._run = wandb.init(settings=settings, **wanted)
        except Exception as error:  # There is no account, network or server.
            log.warning(
                "W&B cannot be reached, the run is recorded offline: %s",
                mask_text(str(error).splitlines()[0] if str(error) else ""),
            )
            if wandb.run is None:
                wandb.teardown()  # Otherwise the id stays in use.
            self._run = wandb.init(**{**wanted, "mode": "offline"})
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)
        self._offline = bool(self._run.settings._offline)  # noqa: SLF001
        self._folder = self._run.settings.sync_dir
