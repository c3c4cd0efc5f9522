"""Dry runs: try a run on a few batches, report errors, and estimate time, disk and memory."""

from hookline.dry_run.findings import DryRunResult, Finding
from hookline.dry_run.run import dry_run

__all__ = ["DryRunResult", "Finding", "dry_run"]
