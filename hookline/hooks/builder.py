"""Build hooks from configs, and the default hooks of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookline.data.protocols import length_of
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, get_priority
from hookline.errors import ConfigError, Problem, Suggestion, parameter_error, suggest

# The priorities by name, for `from hookline.hooks.builder import LOW`.
HIGHEST, VERY_HIGH, HIGH, ABOVE_NORMAL, NORMAL, BELOW_NORMAL, LOW, VERY_LOW, LOWEST = Priority

DEFAULT_HOOKS = (
    "OptimizerHook",
    "IterTimerHook",
    "LoggerHook",
    "EvalHook",
    "CheckpointHook",
    "CheckInvalidLossHook",
    "ReportHook",
)
ACTIONS_OF_STREAMS = 10  # validations and saves of a run whose epochs may never end
SAVE_PERIOD_OF_STREAMS = "15min"
MAX_LISTED = 5  # records in a warning
# Default hooks that a run can drop. Only distributed runs have UnevenBatchHook.
DROPPABLE = (*DEFAULT_HOOKS, "UnevenBatchHook")


def build_hook(config: Mapping[str, Any] | BaseHook | str) -> BaseHook:
    """Build a hook from `{type: Name, …}`.

    Raises:
        ConfigError: With all problems of the config.
    """
    return HOOKS.build(config)


def build_hooks(configs: Iterable[Mapping[str, Any] | BaseHook | str]) -> list[BaseHook]:
    """Build hooks and sort them by priority.

    Raises:
        ConfigError: With all problems of all configs.
    """
    configs = list(configs)
    problems: list[Problem] = []
    for index, config in enumerate(configs):
        if isinstance(config, Mapping):
            problems += [problem.below(index) for problem in HOOKS.check(config)]
    if problems:
        raise ConfigError(problems)
    return sorted(
        (build_hook(config) for config in configs), key=lambda hook: get_priority(hook.priority)
    )


def given_hooks(hooks: Iterable[Any]) -> list[BaseHook]:
    """Build the hooks that the user passed as configs, and check the others.

    Raises:
        ConfigError: With the index and the problems of each entry that cannot be a hook.
    """
    built: list[BaseHook] = []
    problems: list[Problem] = []
    for index, hook in enumerate(hooks):
        try:
            built.append(HOOKS.build(hook))
        except ConfigError as error:
            problems += [problem.below("hooks", index) for problem in error.problems]
        except TypeError as error:
            problems.append(Problem(str(error), ("hooks", index)))
    if problems:
        raise ConfigError(problems)
    return built


def stream_options(max_iters: int) -> dict[str, dict[str, Any]]:
    """Return the options of default hooks for a run by iterations whose epochs may never end.

    It is validated and saved ten times, also saved by the clock, and saved at its end.
    """
    interval = max(1, max_iters // ACTIONS_OF_STREAMS)
    return {
        "LoggerHook": {"by_epoch": False, "log_metric_by_epoch": False},
        # Without `start`, which makes a resumed run validate once more.
        "EvalHook": {"by_epoch": False, "interval": interval},
        "CheckpointHook": {
            "by_epoch": False,
            "interval": interval,
            "every": SAVE_PERIOD_OF_STREAMS,
        },
    }


def get_default_hooks(
    replaced_by: Iterable[BaseHook] = (),
    without: Iterable[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[BaseHook]:
    """Build the default hooks, sorted by priority.

    Args:
        replaced_by: Hooks of the run. Each replaces the default hooks of its class, of the site
            that it owns, and those in its `replaces`.
        without: Names of default hooks to leave out.
        options: Options of default hooks, by their names.

    Raises:
        ConfigError: If `without` has a name that is not a default hook.
    """
    given = list(replaced_by)
    unwanted = set(without)
    unknown = unwanted - set(DROPPABLE)
    problems = []
    for name in sorted(unknown):
        suggestion = suggest(name, DROPPABLE)
        message = "is not a default hook"
        problems.append(Problem(message, ("drop_hooks",), value=name, suggestion=suggestion))
    if problems:
        raise ConfigError(problems)
    options = options or {}
    defaults = [
        HOOKS.get(name)(**options.get(name, {})) for name in DEFAULT_HOOKS if name not in unwanted
    ]
    wanted = [hook for hook in defaults if not any(_replaces(other, hook) for other in given)]
    return sorted(wanted, key=lambda hook: get_priority(hook.priority))


def check_copied(runner: BaseRunner) -> None:
    """Raise ConfigError if the work directory is a URL, and no hook copies the files there."""
    if runner.work_url is None:
        return
    saving = _of_kind("CheckpointHook", runner)
    if not saving:
        advice = Suggestion(advice="use a CheckpointHook, which copies the files, or a local path")
        message = "must be local, because this run has no CheckpointHook"
        raise ConfigError(Problem(message, ("work_dir",), parameter="work_dir", suggestion=advice))
    for hook in saving:
        if hook.mirror not in (None, runner.work_url):
            raise parameter_error(hook, "mirror", "must be left out, because work_dir is a URL")


def warn_about_endless_epochs(runner: BaseRunner) -> None:
    """Warn about waiting for the end of an epoch, which a stream may never reach."""
    if length_of(runner.train_loader) is not None:
        return
    if runner.loop.iter_limit is None:
        runner.logger.warning(
            "train_loader (%s) has no length: if it never ends, no epoch does, and nothing is "
            "validated or saved; pass max_iters=…, the length of the run, or max_train_batches=…, "
            "that of an epoch",
            type(runner.train_loader).__name__,
        )
        return
    waiting = _of_kind("EvalHook", runner)
    for hook in _of_kind("CheckpointHook", runner):
        if hook.every is None and hook.interval > 0:
            waiting.append(hook)
    for hook in waiting:
        if hook.by_epoch:
            runner.logger.warning(
                "%s counts epochs, but train_loader has no length, and its epoch may never end: "
                "pass by_epoch=False to count iterations",
                hook.name,
            )


def warn_about_idle_hooks(runner: BaseRunner) -> None:
    """Warn about hooks that the run never calls: none of their methods has the name of a site."""
    for hook in runner.hooks:
        if not hook.get_triggered_stages() and not hook.extra_sites:
            runner.logger.warning(
                "%s is never called, because none of its methods is named after a site: "
                "`hookline sites` lists them",
                hook.name,
            )


def warn_about_unwritten_records(runner: BaseRunner) -> None:
    """Warn at the end of a run about images and other records that no hook has written."""
    names = sorted(runner.events.outbox.lost)
    if names and runner.is_main:
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        runner.logger.warning(
            "%s%s: recorded but not kept, because no hook of this run writes records; add "
            "LoggerHook()",
            ", ".join(names[:MAX_LISTED]),
            more,
        )


def _of_kind(name: str, runner: BaseRunner) -> list[Any]:
    """Return the hooks of a runner that are instances of a class, by its name."""
    kind = HOOKS.get(name)
    return [hook for hook in runner.hooks if isinstance(hook, kind)]


def _replaces(given: BaseHook, default: BaseHook) -> bool:
    """Return whether a hook of the user replaces a default hook."""
    if isinstance(given, type(default)) or type(default).__name__ in given.replaces:
        return True
    methods = (given.site_method("optimize"), default.site_method("optimize"))
    return None not in methods  # only one hook can own `optimize`
