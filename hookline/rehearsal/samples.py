"""Reading more of the data than a few batches, as far as the time goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset

from hookline.rehearsal.few import each_loader
from hookline.rehearsal.findings import Finding, TooLong, from_error

SECONDS = 10.0  # for each data set
MOST_TOLD = 3


def read_samples(split: str, loader: Any, seconds: float = SECONDS) -> tuple[list[Finding], str]:
    """Read samples spread over a data set, to its end if the time suffices: what fails, and how much was read."""
    findings: list[Finding] = []
    read = total = 0
    for each in each_loader(loader):
        dataset = getattr(each, "dataset", None)
        if dataset is None or isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
            continue
        total += len(dataset)
        until = time.monotonic() + seconds
        for index in spread(len(dataset)):
            try:
                dataset[index]
            except TooLong:
                raise
            except Exception as error:
                finding = from_error(error, f"{split} data")
                findings.append(Finding("error", f"{split} data", f"sample {index}: {finding.text}", finding.advice))
            read += 1
            if time.monotonic() > until or len(findings) >= MOST_TOLD:
                break
    return findings, f"{read:,} of {total:,}" if total else ""


def spread(count: int) -> Iterator[int]:
    """All indices once, those at the ends first and then ever closer ones in between."""
    if count:
        yield 0
    if count > 1:
        yield count - 1
    seen, step = {0, count - 1}, count
    while step > 1:
        half = step // 2 if step > 2 else 1
        for index in range(half, count, half):
            if index not in seen:
                seen.add(index)
                yield index
        step = half
