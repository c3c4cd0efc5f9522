"""Checks before the first batch: mistakes that would make a run fail or train nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline import checks
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


def check_trainable(runner: BaseRunner) -> None:
    """Raise if there is nothing to train on, no length, or no owner of `optimize`."""
    if runner.train_loader is None:
        message = "there is no training data: pass train_loader=…"
        raise HooklineError(message, parameter="train_loader")
    if runner.max_epochs is None and runner.max_iters is None:
        raise HooklineError("either max_epochs or max_iters is required", parameter="max_epochs")
    checks.check_is_loader("train_loader", runner.train_loader)
    checks.check_is_loader("val_loader", runner.val_loader)
    checks.check_loss(runner.loss_fn)
    checks.check_optimizer(
        runner.optimizer,
        has_owner=bool(runner.sites.optimize),
        has_train_step=hasattr(runner.model, "train_step"),
    )


def check_parts(runner: BaseRunner) -> None:
    """Raise if a validation would fail; warn about unused parts. Runs after `before_run`."""
    if runner.val_loader is not None and runner.evaluation.test_fn is None:
        checks.check_can_be_evaluated(runner.model)
    hooks = [*runner.sites.hooks["after_val_iter"], *runner.sites.hooks["after_val_epoch"]]
    others_possible = any(hook.adds_metrics for hook in hooks)
    runner.best.check(runner.evaluation.expected_metrics(runner), others_possible)
    if not runner.is_main:
        return
    modules = (runner.model, runner.loss_fn)
    for name in checks.unrelated_optimizers(runner.optimizer, modules):
        runner.logger.warning(
            "the optimizer%s has no parameter of the model (%s) and will not change it: was it "
            "made for another model?",
            f" {name!r}" if name else "", type(runner.model).__name__,
        )  # fmt: skip
    metrics = runner.evaluation.metrics
    if metrics and runner.val_loader is None and runner.test_loader is None:
        runner.logger.warning(
            "there is neither a val_loader nor a test_loader, so these metrics are never measured: %s",
            ", ".join(metrics),
        )


def warn_about_resume(runner: BaseRunner) -> None:
    """Warn before training if a resume reads data again or cannot be exact."""
    loader = runner.train_loader
    reason = runner.loop.data.of(loader).announcement
    if reason is not None and runner.checkpointer.is_open:
        runner.logger.warning(
            "train_loader (%s) keeps no position: %s",
            type(loader).__name__, reason,
        )  # fmt: skip
