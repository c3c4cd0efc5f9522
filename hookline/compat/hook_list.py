"""The hooks of a runner as a list that code written for OpenMMLab may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hookline.engine import BaseHook, Priority, get_priority
from hookline.hook_checks import unique_name


def _with_notice(name: str) -> Callable[..., Any]:
    """Return a method of `list` that also announces the change."""
    method: Callable[..., Any] = getattr(list, name)

    def change(self: HookList, *arguments: Any, **named: Any) -> Any:
        result = method(self, *arguments, **named)
        self.changed()
        return result

    return change


class HookList(list[Any]):
    """A list that announces each change.

    Args:
        hooks: The hooks, in their order.
        changed: Called after a change.
    """

    def __init__(self, hooks: Iterable[Any], changed: Callable[[], object]) -> None:
        super().__init__(hooks)
        self.changed = changed

    append = _with_notice("append")
    extend = _with_notice("extend")
    insert = _with_notice("insert")
    remove = _with_notice("remove")
    pop = _with_notice("pop")
    clear = _with_notice("clear")
    sort = _with_notice("sort")
    reverse = _with_notice("reverse")
    __setitem__ = _with_notice("__setitem__")
    __delitem__ = _with_notice("__delitem__")
    __iadd__ = _with_notice("__iadd__")


class HooksInList:
    """The hooks of a runner. Their list may be changed or replaced, also during training."""

    _hook_list: HookList

    @property
    def hooks(self) -> list[Any]:
        """The hooks, by priority."""
        return self._hook_list

    @hooks.setter
    def hooks(self, hooks: Iterable[Any]) -> None:
        is_first = "_hook_list" not in vars(self)
        self._hook_list = HookList(hooks, self._take_changes)
        if not is_first:
            self._take_changes()

    @property
    def _hooks(self) -> list[Any]:
        return self._hook_list

    @_hooks.setter
    def _hooks(self, hooks: Iterable[Any]) -> None:
        self.hooks = hooks

    def prepare_hook(self, hook: Any) -> None:
        """Prepare a hook that was added to the list; runners with own sites extend this."""

    def _take_changes(self) -> None:
        """Make the changes of the list count. The place of a new hook decides when it runs."""
        for index, hook in enumerate(self._hook_list):
            if not isinstance(hook, BaseHook):
                raise TypeError(f"a hook is an instance of Hook, got {hook!r}")
            if not self._owns(hook):
                self._add(hook, index)
        self._compile()  # type: ignore[attr-defined]

    def _owns(self, hook: BaseHook) -> bool:
        owner: object = hook.runner
        return owner is self

    def _add(self, hook: BaseHook, index: int) -> None:
        before = [each for each in self._hook_list[:index] if self._owns(each)]
        after = [each for each in self._hook_list[index:] if self._owns(each)]
        hook.name = unique_name(hook, [each.name for each in (*before, *after)])
        lowest = get_priority(before[-1].priority) if before else Priority.HIGHEST
        highest = get_priority(after[0].priority) if after else Priority.LOWEST
        hook.priority = min(max(get_priority(hook.priority), lowest), highest)
        hook.runner = self  # type: ignore[assignment]
        self.prepare_hook(hook)
