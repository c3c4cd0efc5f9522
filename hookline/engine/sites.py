"""The sites: named moments of a run at which hooks are called.

This is the loop with all sites. At a seam, requests of hooks are handled: validate, then save,
then stop.

    before_run
    [after_load_checkpoint]              on resume
    before_train
    for each epoch:
        before_epoch
        before_train_epoch
        for each batch:
            before_train_iter
            forward, loss
            after_forward
            optimize                     backward, after_backward, step, after_optimizer_step
            after_train_iter
            iter += 1
            -- seam --                   [before_save_checkpoint, after_save_checkpoint]
        after_train_epoch
        [before_val, before_val_epoch, (before_val_iter, after_val_iter)*, after_val_epoch,
         after_val]
        after_epoch
        epoch += 1
        -- seam --
    after_train
    after_run
    on_exception                         after an error, instead of the two above
    cleanup                              always, also after a failure
"""

from __future__ import annotations

from typing import Any

OWNED = frozenset({"optimize"})  # Only one hook may implement such a site.
IN_STEP = ("after_forward", "after_backward", "after_optimizer_step")
PER_ITERATION = frozenset({"before_train_iter", *IN_STEP, "after_train_iter"})
PER_EPOCH = frozenset({"before_epoch", "before_train_epoch", "after_train_epoch", "after_epoch"})


class SiteMethods:
    """One method for each site, in the order of a run. A hook overrides those that it needs.

    A method gets `runner`, or the arguments that it names instead: `def after_epoch(self, epoch,
    metrics)`. The signatures below accept everything, so that no override is a type error.
    """

    def before_run(self, *args: Any, **kwargs: Any) -> None:
        """Before anything else; open resources for the whole run here."""

    def after_load_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """A checkpoint was loaded; `checkpoint` holds it."""

    def before_train(self, *args: Any, **kwargs: Any) -> None:
        """Training is about to begin; a resumed run has its state."""

    def before_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Before an epoch, training and validation together."""

    def before_train_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Before the epoch's first training batch."""

    def before_train_iter(self, *args: Any, **kwargs: Any) -> None:
        """A batch was loaded; a hook may replace `runner.batch`."""

    def after_forward(self, *args: Any, **kwargs: Any) -> None:
        """The loss is computed; a hook may change `runner.outputs["loss"]` before backward."""

    def optimize(self, *args: Any, **kwargs: Any) -> None:
        """Backward, clip, step and zero the gradients; exactly one hook owns this site."""

    def after_backward(self, *args: Any, **kwargs: Any) -> None:
        """Gradients are complete and not yet used; called by the owner of `optimize`."""

    def after_optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """The optimizer has just stepped; called by the owner of `optimize`."""

    def after_train_iter(self, *args: Any, **kwargs: Any) -> None:
        """An iteration is over; request validation, saving or stopping here."""

    def after_train_epoch(self, *args: Any, **kwargs: Any) -> None:
        """The epoch's last training batch is done."""

    def before_val(self, *args: Any, **kwargs: Any) -> None:
        """Before a validation, while the model is still in training mode."""

    def before_val_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Before the first validation batch."""

    def before_val_iter(self, *args: Any, **kwargs: Any) -> None:
        """Before a validation batch."""

    def after_val_iter(self, *args: Any, **kwargs: Any) -> None:
        """After a validation batch; `outputs` holds the predictions."""

    def after_val_epoch(self, *args: Any, **kwargs: Any) -> None:
        """`metrics` holds the results of the validation; a hook may add to them."""

    def after_val(self, *args: Any, **kwargs: Any) -> None:
        """The validation is over, the model is back in training mode and `best` is up to date."""

    def after_epoch(self, *args: Any, **kwargs: Any) -> None:
        """The epoch is over, validation included; `epoch` still numbers it."""

    def before_save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """The state is captured; a hook may add plain data and tensors to `checkpoint`."""

    def after_save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """The checkpoint was handed to the writer."""

    def after_train(self, *args: Any, **kwargs: Any) -> None:
        """Training is over: finished, or stopped by request."""

    def before_test(self, *args: Any, **kwargs: Any) -> None:
        """Before a test."""

    def before_test_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Before the first test batch."""

    def before_test_iter(self, *args: Any, **kwargs: Any) -> None:
        """Before a test batch."""

    def after_test_iter(self, *args: Any, **kwargs: Any) -> None:
        """After a test batch; `outputs` holds the predictions."""

    def after_test_epoch(self, *args: Any, **kwargs: Any) -> None:
        """`metrics` holds the results of the test."""

    def after_test(self, *args: Any, **kwargs: Any) -> None:
        """The test is over."""

    def before_predict(self, *args: Any, **kwargs: Any) -> None:
        """Before a prediction."""

    def after_predict(self, *args: Any, **kwargs: Any) -> None:
        """The prediction is over."""

    def after_run(self, *args: Any, **kwargs: Any) -> None:
        """The run ended without an error."""

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        """The run failed; `exception` holds the error."""

    def cleanup(self, *args: Any, **kwargs: Any) -> None:
        """Last in every run, also after a failure; release resources here."""


SITES = {
    name: (method.__doc__ or "").strip()
    for name, method in vars(SiteMethods).items()
    if not name.startswith("_")
}  # the description of each site by name, in the order of a run
SITE_NAMES = tuple(SITES)
