"""`mmengine.registry`: classes and functions by name. Scopes need MMEngine itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hookline.compat import registry
from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.registry import build_from_cfg as build_from_cfg


class Registry(registry.Registry):
    """Classes and functions by name."""

    @contextmanager
    def switch_scope_and_registry(self, scope: Any) -> Generator[Registry, None, None]:
        """Yield this registry: there are no scopes here."""
        yield self


def _root(name: str, home: str) -> Registry:
    return Registry(name, home=f"hookline.compat.mmengine.{home}", advice=ADVICE)


DATASETS = _root("dataset", "dataset")
DATA_SAMPLERS = _root("data sampler", "dataset")
FUNCTIONS = _root("function", "dataset")
HOOKS = _root("hook", "hooks")
LOOPS = _root("loop", "runner")
METRICS = _root("metric", "evaluator")
MODELS = _root("model", "model")
OPTIMIZERS = _root("optimizer", "optim")
OPTIM_WRAPPERS = _root("optim_wrapper", "optim")
OPTIM_WRAPPER_CONSTRUCTORS = _root("optimizer wrapper constructor", "optim")
PARAM_SCHEDULERS = _root("parameter scheduler", "optim")

__getattr__ = not_covered(__name__, advice=ADVICE)
