"""A real notebook: cells that run in a kernel of their own, one after the other."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.waiting import LIMIT_S, wait_until

ROOT = Path(__file__).parents[1]
VALUE = "application/json"  # the kind of output that has a value; cells may also print text


class Notebook:
    """A notebook that grows cell by cell.

    Args:
        client: Runs the cells.
        folder: The directory in which the kernel runs.
    """

    def __init__(self, client: NotebookClient, folder: Path) -> None:
        self._client = client
        self._folder = folder

    def run(self, code: str, *, interrupt_at: str | None = None) -> list[dict[str, Any]]:
        """Run a cell and return its outputs.

        Args:
            code: The text of the cell. An error in it is raised here.
            interrupt_at: Interrupt the cell, as the stop button does, when it has written this file.
        """
        cells = self._client.nb.cells
        cells.append(nbformat.v4.new_code_cell(code))
        thread = None
        if interrupt_at is not None:
            thread = threading.Thread(target=self._interrupt, args=(self._folder / interrupt_at,))
            thread.start()
        try:
            self._client.execute_cell(cells[-1], len(cells) - 1)
        finally:
            if thread is not None:
                thread.join()
        return list(cells[-1].outputs)

    def value(self, expression: str) -> Any:
        """Return the value of an expression, which JSON can hold."""
        bundle = f"{{'{VALUE}': {expression}}}"
        outputs = self.run(f"from IPython.display import display; display({bundle}, raw=True)")
        (value,) = [each["data"][VALUE] for each in outputs if VALUE in each.get("data", {})]
        return value

    def size(self) -> int:
        """Return the bytes of all outputs so far, as they are saved in the file."""
        return sum(len(json.dumps(cell.outputs)) for cell in self._client.nb.cells)

    def _interrupt(self, file: Path) -> None:
        wait_until(file.exists, f"the file {file.name}")
        asyncio.run(self._client.km.interrupt_kernel())


@contextmanager
def open_notebook(folder: Path) -> Iterator[Notebook]:
    """Start a kernel in a directory, and end it."""
    client = NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=LIMIT_S,
        resources={"metadata": {"path": str(folder)}},
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with client.setup_kernel(env=environment):
        yield Notebook(client, folder)


def text_of(outputs: list[dict[str, Any]]) -> str:
    """Return all text that a cell has printed."""
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def html_of(outputs: list[dict[str, Any]]) -> list[str]:
    """Return the HTML of all displays of a cell, in their last state."""
    return [
        output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})
    ]
