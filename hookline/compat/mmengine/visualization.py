"""`mmengine.visualization`: the visualizer, which records scalars. Drawing needs MMEngine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.utils import ManagerMixin


class Visualizer(ManagerMixin):
    """A writer of scalars, as JSON lines in `vis_data/scalars.json` of a directory."""

    def __init__(self, name: str, save_dir: str = ".") -> None:
        super().__init__(name)
        self.dataset_meta: dict[str, Any] | None = None
        self._file = Path(save_dir, "vis_data", "scalars.json")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Visualizer.{name} is not covered; {ADVICE}")

    def add_scalar(self, name: str, value: Any, step: int = 0) -> None:
        self.add_scalars({name: value}, step)

    def add_scalars(self, scalar_dict: Mapping[str, Any], step: int = 0) -> None:
        row = {}
        for key, value in {"step": step, **scalar_dict}.items():
            row[key] = value.item() if hasattr(value, "item") else value
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


__getattr__ = not_covered(__name__, advice=ADVICE)
