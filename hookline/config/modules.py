"""What to say of a module that a config names and that is not the one its user means."""

from __future__ import annotations

import difflib
import pkgutil
import sys
from dataclasses import replace
from pathlib import Path as FilePath

from hookline.errors import Problem


def explained(problem: Problem, dotted_path: str) -> Problem:
    """The problem of a class that was not found, with the file it was looked for in and the user's own module that may be meant."""
    name, _, attribute = dotted_path.rpartition(".")
    found = f"module {name!r} has no"
    if name and problem.message.startswith(found):
        file = getattr(sys.modules.get(name), "__file__", None)
        message = problem.message.replace(found, f"module {name!r} ({file}) has no", 1) if file else problem.message
        problem = replace(problem, message=message)
        if file and (own := _hidden_by(name, file)):
            return replace(problem, message=f"{message.partition('; ')[0]}; it hides your {own}: give that another name")
    hint = nearest_module(name, attribute)
    if not hint or "did you mean" in problem.message:
        return problem
    return replace(problem, message=f"{problem.message.partition('; known: ')[0]}{hint}")


def nearest_module(name: str, attribute: str = "") -> str:
    """The end of an error message: the module in the working directory that a name is close to, if there is one."""
    first, dot, rest = name.partition(".")
    own = [module.name for module in pkgutil.iter_modules([str(FilePath.cwd())]) if module.name != first]
    near = difflib.get_close_matches(first, own, n=1, cutoff=0.6)
    return f"; did you mean {'.'.join(filter(None, (near[0] + dot + rest, attribute)))!r}?" if near else ""


def _hidden_by(name: str, file: str) -> str | None:
    """The user's file of that name, if another one was imported."""
    own = FilePath(f"{name.replace('.', '/')}.py")
    return str(own) if own.is_file() and not own.samefile(file) else None
