"""Send a message when a run ends, fails or finds a new best result."""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_choice
from hookline.events.format import format_scalars
from hookline.events.notify import Notifier, is_webhook, post, run
from hookline.secrets import MASK, mask_text

log = logging.getLogger(__name__)

Moment = Literal["end", "failure", "best"]
MAX_TIMEOUT_S = 3600.0
MAX_TEXT_CHARACTERS = 2000  # receivers reject long messages; an error may have any length


@HOOKS.register()
@dataclass
class NotifyHook(BaseHook):
    """Send a message to a webhook or a command when a run ends, fails or has a new best result.

    The message is a JSON object with `event`, `text`, `run`, `host`, `epoch`, `iter` and `metrics`;
    Slack and Mattermost show its `text`. A metric that is NaN or infinite is null. A thread sends
    it: a receiver that fails or hangs is logged once and never stops the training. Secrets are
    masked.

    Args:
        webhook: Address to post messages to. It counts as a secret: logs and saved configs show
            `***`.
        command: Program and its arguments. It gets the message as its input. No shell is involved.
        moments: Moments to report, of `end`, `failure` and `best`.
        timeout: Number of seconds for one delivery, and for the rest of them at the end of the run.

    Example:
        ```yaml
        hooks:
          - {type: NotifyHook, command: [tee, -a, messages.txt], moments: [end, failure]}
        ```
    """

    webhook: str | None = None
    command: list[str] | None = None
    moments: Sequence[Moment] = ("end", "failure", "best")
    timeout: float = 10.0

    # Runs late in `after_*`, when other hooks have added their metrics.
    priority = Priority.HIGH
    ranks = "main"

    def __post_init__(self) -> None:
        if self.webhook is not None and not is_webhook(self.webhook):
            expected = "must be an http or https address"
            raise parameter_error(self, "webhook", expected, value=MASK)
        if not 0 < self.timeout <= MAX_TIMEOUT_S:
            raise parameter_error(self, "timeout", f"must be above 0 and at most {MAX_TIMEOUT_S:g}")
        for moment in self.moments:
            require_choice(type(self).__name__, "moments", moment, get_args(Moment))
        self._notifier: Notifier | None = None
        if "best" not in self.moments:
            self.disable_sites("after_val")

    def before_train(self, runner: BaseRunner) -> None:
        receivers = {}
        if self.webhook is not None:
            receivers["the webhook"] = post(self.webhook, self.timeout)
        if self.command:
            receivers["the command"] = run(self.command, self.timeout)
        if not receivers:
            log.warning("%s: without a webhook or a command, no message is sent", self.name)
        self._notifier = Notifier(self.name, receivers)

    def after_val(self, runner: BaseRunner) -> None:
        improved = {}
        for metric, record in runner.best.items():
            if record["iter"] == runner.iter:
                improved[metric] = record["value"]
        if improved:
            self._send(runner, "best", f"new best {format_scalars(improved)}")

    def after_train(self, runner: BaseRunner) -> None:
        if "end" in self.moments:
            self._send(runner, "end", f"ended: {runner.stop_reason}")

    def on_exception(self, runner: BaseRunner) -> None:
        if "failure" in self.moments:
            error = runner.exception
            reason = mask_text(f"{type(error).__name__}: {error}")
            if len(reason) > MAX_TEXT_CHARACTERS:
                reason = f"{reason[:MAX_TEXT_CHARACTERS]}…"
            self._send(runner, "failure", f"failed: {reason}")

    def cleanup(self, runner: BaseRunner) -> None:
        notifier, self._notifier = self._notifier, None
        if notifier is not None:
            in_a_hurry = isinstance(runner.exception, (SystemExit, KeyboardInterrupt))
            notifier.close(0.0 if in_a_hurry else self.timeout)

    def _send(self, runner: BaseRunner, event: Moment, text: str) -> None:
        if self._notifier is None:
            return
        name = runner.work_dir.resolve().name
        text = f"{name}: {text} (epoch {runner.epoch}, iteration {runner.iter})"
        # JSON has no NaN, which a failed run may have.
        metrics: dict[str, Any] = dict(runner.metrics)
        for key, value in metrics.items():
            if isinstance(value, float) and not math.isfinite(value):
                metrics[key] = None
        message: dict[str, Any] = {
            "event": event,
            "text": text,
            "run": name,
            "host": socket.gethostname(),
            "epoch": runner.epoch,
            "iter": runner.iter,
            "metrics": metrics,
        }
        self._notifier.send(message)
