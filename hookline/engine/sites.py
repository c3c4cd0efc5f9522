"""All sites: the named moments of a run at which hooks are called.

The loop, with every site in its place (a seam is where requests are honoured: validate, then save, then stop):

    before_run
    [after_load_checkpoint]                      when the run resumes
    before_train
    for each epoch:
        before_epoch
        before_train_epoch
        for each batch:
            before_train_iter
            forward, loss
            after_forward
            optimize                             backward, after_backward, step, after_optimizer_step
            after_train_iter
            iter += 1
            -- seam --                           validation and saving (before_save_checkpoint, after_save_checkpoint), if asked for
        after_train_epoch
        [before_val, before_val_epoch, (before_val_iter, after_val_iter)*, after_val_epoch, after_val]
        after_epoch
        epoch += 1
        -- seam --
    after_train
    after_run
    on_exception                                 only after an error, instead of the two above
    cleanup                                      always, also after a failure
"""

from __future__ import annotations

from typing import NamedTuple


class Site(NamedTuple):
    """A named moment of a run."""

    name: str
    meaning: str
    owned: bool = False  # does the work, so exactly one hook may have it


SITES = (
    Site("before_run", "before anything else; open what must be open for the whole run"),
    Site("after_load_checkpoint", "a checkpoint was loaded; `checkpoint` holds it"),
    Site("before_train", "training is about to begin, resumed state is in place"),
    Site("before_epoch", "before an epoch, training and validation together"),
    Site("before_train_epoch", "before the epoch's first training batch"),
    Site("before_train_iter", "a batch is there and may be replaced (`runner.batch`)"),
    Site("after_forward", "outputs and loss are there; `runner.outputs['loss']` may be changed before backward"),
    Site("optimize", "backward, clip, step, zero_grad; exactly one hook owns it", owned=True),
    Site("after_backward", "gradients are complete and not yet used"),
    Site("after_optimizer_step", "the parameters have just changed"),
    Site("after_train_iter", "an iteration is over; ask here for validation, saving or stopping"),
    Site("after_train_epoch", "the epoch's last training batch is done"),
    Site("before_val", "before a validation, while the model is still in its training mode"),
    Site("before_val_epoch", "before the first validation batch"),
    Site("before_val_iter", "before a validation batch"),
    Site("after_val_iter", "after a validation batch; `outputs` holds predictions"),
    Site("after_val_epoch", "`metrics` holds the results of the validation"),
    Site("after_val", "validation is over, the model is back in its training mode"),
    Site("after_epoch", "the epoch is over, validation included; `epoch` still names it"),
    Site("before_save_checkpoint", "the snapshot is taken; plain data may be added to `checkpoint`"),
    Site("after_save_checkpoint", "the snapshot was handed to its writers"),
    Site("after_train", "training is over: finished, or stopped by request"),
    Site("before_test", "before a test"),
    Site("before_test_epoch", "before the first test batch"),
    Site("before_test_iter", "before a test batch"),
    Site("after_test_iter", "after a test batch; `outputs` holds predictions"),
    Site("after_test_epoch", "`metrics` holds the results of the test"),
    Site("after_test", "the test is over"),
    Site("after_run", "the run ended without an error"),
    Site("on_exception", "the run failed; `exception` holds the error"),
    Site("cleanup", "always runs last, also after a failure; release resources here"),
)

SITE_NAMES = tuple(site.name for site in SITES)
OWNED = frozenset(site.name for site in SITES if site.owned)
PER_ITERATION = frozenset({"before_train_iter", "after_forward", "after_backward", "after_optimizer_step", "after_train_iter"})
PER_EPOCH = frozenset({"before_epoch", "before_train_epoch", "after_train_epoch", "after_epoch"})

# What the same moments are called elsewhere: so that an error can name ours.
FOREIGN_NAMES = {
    "before_training": "before_train",
    "after_training": "after_train",
    "before_step": "before_train_iter",
    "after_step": "after_train_iter",
    "before_iter": "before_train_iter",
    "after_iter": "after_train_iter",
    "on_train_begin": "before_train",
    "on_train_start": "before_train",
    "on_train_end": "after_train",
    "on_fit_start": "before_run",
    "on_fit_end": "after_run",
    "on_epoch_begin": "before_epoch",
    "on_epoch_end": "after_epoch",
    "on_train_epoch_start": "before_train_epoch",
    "on_train_epoch_end": "after_train_epoch",
    "on_train_batch_start": "before_train_iter",
    "on_train_batch_end": "after_train_iter",
    "on_step_begin": "before_train_iter",
    "on_step_end": "after_train_iter",
    "on_after_backward": "after_backward",
    "on_validation_start": "before_val",
    "on_validation_end": "after_val",
    "on_validation_epoch_end": "after_val_epoch",
    "on_test_end": "after_test",
    "on_save_checkpoint": "before_save_checkpoint",
    "on_load_checkpoint": "after_load_checkpoint",
    "teardown": "cleanup",
}
