"""Print the table of requirements with the result of each check: `python -m tests.documents`."""

from __future__ import annotations

import logging
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import torch

from tests.documents.table import load_sections, print_table


def main() -> int:
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())  # only the table is printed
    logging.getLogger("hookline").propagate = False
    wanted = sys.argv[1:]
    sections = [
        section
        for section in load_sections()
        if not wanted or any(word in f"{section.document} {section.title}" for word in wanted)
    ]
    return 1 if print_table(sections, lambda line: print(line, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main())
