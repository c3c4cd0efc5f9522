"""Write the timeline and the report page of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, StopReason
from hookline.hooks.bases.reports import is_fresh_run

if TYPE_CHECKING:
    from hookline.report.recorder import RunRecorder

LENGTHS = {"max_epochs", "max_iters"}  # details of the reason when a run reaches its end


@HOOKS.register()
@dataclass
class ReportHook(BaseHook):
    """Write a timeline of the run, and the report page `report.html` at the end.

    The timeline is `timeline.jsonl` in the work directory. The hook also serves requests of
    `hookline watch`: a thread checks for them once a second, and the next seam settles them. It has
    no site inside an iteration.

    Example:
        ```yaml
        hooks:
          - {type: ReportHook}
        ```
    """

    # Runs last at the end, when the other hooks have written their files.
    priority = Priority.HIGHEST
    ranks = "main"

    def __post_init__(self) -> None:
        self._recorder: RunRecorder | None = None

    # Not before_run: an evaluation must not touch the files of a running training.
    def before_train(self, runner: BaseRunner) -> None:
        from hookline.report.recorder import RunRecorder

        def on_request(action: str) -> None:
            requests = runner.loop.requests
            requests.call_at_next_seam(lambda: self._handle_request(runner, action))

        self._recorder = RunRecorder(runner, is_fresh_run(runner), on_request)
        self._recorder.start()

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if self._recorder is not None and runner.loop.resuming:  # a rollback, not a resume
            self._recorder.add_rollback()

    def before_val(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            self._recorder.begin("validate")

    def after_val(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            self._recorder.end("validate")

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            self._recorder.sync()
            self._recorder.begin("save")

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            self._recorder.end("save")
            self._recorder.update_index()

    def after_epoch(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            self._recorder.update_index()
            self._recorder.add("epoch")
            self._recorder.update_costs()

    def after_train(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            reason = runner.stop_reason
            finished = reason is not None and bool(LENGTHS & set(reason.details))
            self._recorder.add("stop", finished=finished, reason=str(reason))

    def on_exception(self, runner: BaseRunner) -> None:
        if self._recorder is not None and runner.exception is not None:
            self._recorder.add_failure(runner.exception)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._recorder is None:
            return  # There was no training.
        recorder, self._recorder = self._recorder, None
        in_a_hurry = isinstance(runner.exception, (SystemExit, KeyboardInterrupt))
        recorder.close(in_a_hurry)
        if in_a_hurry:
            return
        runner.checkpointer.settle_mirror()  # The page names the checkpoints that are only local.
        try:
            recorder.make_page()
        except Exception as error:  # The page can be made again; the run must not fail for it.
            runner.logger.warning(
                "%s: no report was made (%s: %s)", self.name, type(error).__name__, error
            )

    def _handle_request(self, runner: BaseRunner, action: str) -> None:
        """Pass a request of the live page on. Called at a seam, which settles the requests."""
        if self._recorder is not None:
            self._recorder.add("requested", action=action)
        if runner.checkpointer.is_open:
            runner.request_save()
        if action == "stop":
            runner.request_stop(StopReason("stopped from the live page", hook=self.name))
