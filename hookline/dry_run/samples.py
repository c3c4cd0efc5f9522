"""Reading samples spread over a data set, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch.utils.data import IterableDataset

from hookline.dry_run.findings import DryRunTimeout, Finding, finding_from_error
from hookline.dry_run.loaders import list_loaders

SECONDS_PER_DATASET = 10.0
MAX_FINDINGS = 3


def read_samples(
    split: str, loader: Any, seconds: float = SECONDS_PER_DATASET
) -> tuple[list[Finding], str]:
    """Read samples of a split; return the errors, and how many samples were read.

    Reads the whole data set if the time suffices. Data sets without indices are skipped.
    """
    findings: list[Finding] = []
    read = 0
    total = 0
    for each in list_loaders(loader):
        dataset: Any = getattr(each, "dataset", None)
        if not _is_indexed(dataset):
            continue
        total += len(dataset)
        deadline = time.monotonic() + seconds
        for index in spread_indices(len(dataset)):
            finding = _read_sample(dataset, index, f"{split} data")
            if finding is not None:
                findings.append(finding)
            read += 1
            if time.monotonic() > deadline or len(findings) >= MAX_FINDINGS:
                break
    return findings, f"{read:,} of {total:,}" if total else ""


def spread_indices(count: int) -> Iterator[int]:
    """Yield every index once: first both ends, then indices that lie ever closer together."""
    seen: set[int] = set()
    for index in (0, count - 1):
        if 0 <= index < count and index not in seen:
            seen.add(index)
            yield index
    step = count
    while step > 1:
        step = max(step // 2, 1)
        for index in range(step, count, step):
            if index not in seen:
                seen.add(index)
                yield index


def _is_indexed(dataset: Any) -> bool:
    if dataset is None or isinstance(dataset, IterableDataset):
        return False
    return hasattr(dataset, "__len__")


def _read_sample(dataset: Any, index: int, where: str) -> Finding | None:
    try:
        dataset[index]
    except DryRunTimeout:
        raise
    except Exception as error:
        finding = finding_from_error(error, where)
        return replace(finding, text=f"sample {index}: {finding.text}")
    return None
