"""The store of recorded events, and the writers that read from it."""

from hookline.events.storage import EventStorage, Record
from hookline.events.writer import WRITERS, Writer

__all__ = ["WRITERS", "EventStorage", "Record", "Writer"]
