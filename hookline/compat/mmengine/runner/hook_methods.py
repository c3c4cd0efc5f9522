"""The hooks of MMEngine's runner: registration, and `call_hook` for loops of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from hookline.compat.hook_list import HooksInList
from hookline.compat.mmengine.hooks import Hook
from hookline.compat.mmengine.optim import OptimWrapper
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.persistent_workers import continuing_workers
from hookline.engine import HOOKS as OWN_HOOKS
from hookline.engine import SITE_NAMES, BaseHook, BaseRunner
from hookline.engine.checkpointing import Checkpointer
from hookline.engine.evaluation import Evaluation, Mode
from hookline.engine.loop import Loop
from hookline.errors import RegistrationError
from hookline.metrics.results import Metrics
from hookline.priority import get_priority

# After these stages of a user's loop, requests are settled.
SEAMS = frozenset(
    {"after_train_iter", "after_train_epoch", "after_val_epoch", "after_val", "after_train"}
)
# Where Hookline's hooks find the arguments of MMEngine's stages.
ATTRIBUTES = {"data_batch": "batch", "batch_idx": "batch_idx", "checkpoint": "checkpoint"}


class HookMethods(HooksInList, BaseRunner):
    """The hook methods of the runner.

    Attributes:
        call_arguments: The arguments of the stage that runs now. If it is None, MMEngine's hooks
            get them from the attributes of the runner.
    """

    call_arguments: Mapping[str, Any] | None
    checkpointer: MMEngineCheckpointer
    optim_wrapper: Any
    _in_epoch: bool
    _evaluation_scope: ExitStack
    _requested_at: tuple[int, int] | None
    _stage: str
    _train_loop: Any
    _val_workers: torch.Tensor | None
    val_loop: Any

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Call a method of all hooks that have it, and settle requests.

        Loops of users call this, for MMEngine's stages and for their own. They count iterations
        and epochs after it, so a checkpoint of this seam gets its position from the stage. The
        loops of this package call Hookline's `Loop` for training instead.
        """
        with self.passing(**kwargs):
            self._prepare(fn_name)
            if fn_name in SITE_NAMES:
                self.call_site(fn_name)
            if fn_name not in Hook.stages:
                self._call_own_stage(fn_name, kwargs)
        self._conclude(fn_name)
        if fn_name in SEAMS and self.iter >= self.loop.requests.due_at:
            self._stage = fn_name
            self.loop.requests.settle(self)
            self._stage = ""
            if self.stop_reason is not None and isinstance(self._train_loop, BaseLoop):
                self._train_loop.stop_training = True  # type: ignore[attr-defined]
        if fn_name == "after_train_epoch":
            self.inner_iter = 0

    @property
    def has_own_dispatch(self) -> bool:
        """Whether a subclass overrides `call_hook`, so that the loops must call it."""
        return type(self).call_hook is not HookMethods.call_hook

    def call_site(self, site: str) -> None:
        """Call the hooks of a site. A new epoch closes the one before it."""
        if site == "before_epoch":
            self._call_after_epoch()
            self._in_epoch = True
        for call in self.sites.calls(site):
            call(self)

    def close_epoch(self) -> None:
        """Call `after_epoch`, after the validation of an epoch, and settle requests."""
        self._call_after_epoch()
        self.loop.settle_if_due()

    @contextmanager
    def passing(self, **arguments: Any) -> Iterator[None]:
        """Pass arguments to MMEngine's hooks, and set them for those of Hookline."""
        for name, value in arguments.items():
            if name in ATTRIBUTES:
                setattr(self, ATTRIBUTES[name], value)
            elif name == "outputs":
                self.outputs = value if isinstance(value, dict) else {"predictions": value}
            elif name == "metrics":
                self.metrics = Metrics(value or {})
        outer = self.call_arguments
        self.call_arguments = arguments or None
        try:
            yield
        finally:
            self.call_arguments = outer

    def register_hook(self, hook: Any, priority: int | str | None = None) -> BaseHook:
        """Add a hook, or one built from `dict(type=…)`.

        Args:
            hook: The hook, or its config.
            priority: Wins over the config's priority and the class's.
        """
        if not isinstance(hook, (BaseHook, Mapping)):
            raise TypeError(f"hook should be an instance of Hook or dict, but got {hook}")
        if isinstance(hook, Mapping):
            options = dict(hook)
            configured = options.pop("priority", None)
            priority = configured if priority is None else priority
            hook = _build(options)
        self.prepare_hook(hook)
        registered = super().register_hook(hook, priority)
        # The sort is stable: registration breaks ties.
        self.hooks.sort(key=lambda each: get_priority(each.priority))
        return registered

    def prepare_hook(self, hook: BaseHook) -> None:
        """Reject a hook that steps the optimizer."""
        if hook.site_method("optimize") is not None:
            raise RegistrationError(
                "the hook owns 'optimize', but here the model's train_step steps the optimizer: "
                "set its options in optim_wrapper",
                component=hook.name or type(hook).__name__,
                site="optimize",
            )

    def request_write(self, write: Callable[[], None]) -> None:
        """Request that a function writes a checkpoint in MMEngine's layout at the next seam.

        MMEngine writes it at once, before the iteration or the epoch is counted. Therefore
        `before_save_checkpoint` is called with the counters of the request.
        """
        requested_at = (self.epoch, self.iter)

        def write_as_requested() -> None:
            self._requested_at = requested_at
            try:
                write()
            finally:
                self._requested_at = None

        self.checkpointer.writes.append(write_as_requested)
        self.loop.requests.save(None, self.checkpointer.queue, collective=True)

    def has_hooks_after(self, hook: Any, stage: str) -> bool:
        """Return whether other hooks follow one in a stage. They may read its checkpoint."""
        hooks = self.sites.hooks[stage]
        return hook in hooks and hooks[-1] is not hook

    def _prepare(self, stage: str) -> None:
        """Prepare the engine for the hooks of a stage."""
        if stage == "before_train_epoch":
            self.call_site("before_epoch")
        elif stage == "before_train_iter":
            self.loop.reapply_state()
        elif stage in ("before_val", "before_test"):
            self._evaluation_scope.close()  # of an evaluation that failed
            self._evaluation_scope = self.evaluation.begin(self)
            if stage == "before_val":
                workers = continuing_workers(self.val_loop.dataloader, self._val_workers)
                self._evaluation_scope.enter_context(workers)
                self._val_workers = None
        elif stage == "after_train":
            self.loop.end()
            if self.stop_reason is None:
                self._call_after_epoch()
                self.stop_reason = self.loop.natural_end()

    def _conclude(self, stage: str) -> None:
        """Update the engine after the hooks of a stage."""
        if stage == "before_train":
            self.loop.begin()
        elif stage in ("after_val_epoch", "after_test_epoch"):
            self._evaluation_scope.close()
            self.model.eval()  # MMEngine leaves it so
        if stage == "after_val_epoch":
            self.best.update(self.metrics, self.epoch, self.iter)
            self.best.warn_about_missing(self.metrics)

    def _call_own_stage(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Call methods that are no sites, or no stages of MMEngine: a custom loop names them."""
        for hook in self.hooks:
            was_called = name in SITE_NAMES and not isinstance(hook, Hook)
            if not was_called and _has_own(hook, name):
                getattr(hook, name)(self, **arguments)

    def _call_after_epoch(self) -> None:
        if self._in_epoch:
            self._in_epoch = False
            self.call_site("after_epoch")


class MMEngineLoop(Loop):
    """The loop of the engine, with the sites and the gradient accumulation of MMEngine."""

    _runner: Any

    @property
    def accumulating(self) -> bool:
        """Whether gradients are being added up: half a gradient cannot be saved."""
        wrapper = self._runner.optim_wrapper
        if not isinstance(wrapper, OptimWrapper) or self._runner.optimizer is None:
            return False  # Of several optimizers, each has its own count.
        return not wrapper.should_update() and self._runner.stop_reason is None

    @accumulating.setter
    def accumulating(self, value: bool) -> None:
        pass  # the optimizer wrapper counts

    def call_site(self, site: str) -> None:
        """Call the hooks of a site that lies around epochs."""
        if not self._runner.has_own_dispatch:
            self._runner.call_site(site)
        elif site in Hook.stages:
            self._runner.call_hook(site)


class MMEngineCheckpointer(Checkpointer):
    """The writer of the checkpoints of MMEngine's CheckpointHook and of Hookline's hooks.

    Attributes:
        writes: Functions that write checkpoints in MMEngine's layout at the next seam.
        must_capture: Whether a hook of Hookline requested the state at the next seam.
    """

    def __init__(self, runner: Any) -> None:
        super().__init__(runner)
        self.writes: list[Callable[[], None]] = []
        self.must_capture = False
        self._make_write: Callable[[str], Callable[[], None]] | None = None

    def enable(self, make_write: Callable[[str], Callable[[], None]]) -> None:
        """Accept requests for named checkpoints, which functions write in MMEngine's layout."""
        self._make_write = make_write
        self.is_open = True

    def close(self, wait: bool = True) -> None:
        """Finish the writing, and release the directory."""
        self._make_write = None
        super().close(wait)

    def request_snapshot(self, collective: bool = False) -> None:
        """Request that the state is captured at the next seam, for `before_save_checkpoint`."""
        self.must_capture = True
        super().request_snapshot(collective)

    def queue(self, name: str) -> None:
        """Add a name for the checkpoint of the next seam."""
        if self._make_write is None:
            super().queue(name)
        else:
            self.writes.append(self._make_write(name))

    def save(self) -> None:
        """Write everything that was requested."""
        writes, self.writes = self.writes, []
        for write in writes:
            write()
        if self.must_capture or self.names:
            self.must_capture = False
            super().save()


class ValLoopEvaluation(Evaluation):
    """Evaluates by the loop of the runner when a hook requests a validation."""

    def run(self, runner: Any, mode: Mode) -> Metrics:
        """Run the loop of validation or test."""
        loop = runner.val_loop if mode == "val" else runner.test_loop
        loop.run()
        metrics: Metrics = runner.metrics
        return metrics

    def expected_metrics(self, runner: BaseRunner) -> list[str] | None:
        """Return None: only the evaluator knows the names."""
        return None


def _build(options: dict[str, Any]) -> BaseHook:
    """Build a hook of the project or of MMEngine, or else one of Hookline."""
    kind = options["type"]
    is_own = isinstance(kind, str) and kind in OWN_HOOKS and not _is_registered(kind)
    built: BaseHook = OWN_HOOKS.build(options) if is_own else HOOKS.build(options)
    return built


def _is_registered(kind: str) -> bool:
    """Return whether the current scope, that of the project, or MMEngine has a hook."""
    with HOOKS.switch_scope_and_registry(None) as registry:
        return registry.get(kind) is not None


def _has_own(hook: BaseHook, name: str) -> bool:
    """Return whether a hook has a method of a name that its base class lacks."""
    method = getattr(hook, name, None)
    inherited = getattr(BaseHook, name, None)
    return callable(method) and getattr(method, "__func__", method) is not inherited
