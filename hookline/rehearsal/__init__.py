"""A run in small, before the hours: what would go wrong, and what it would need."""

from hookline.rehearsal.findings import Finding
from hookline.rehearsal.rehearse import Rehearsal, rehearse

__all__ = ["Finding", "Rehearsal", "rehearse"]
