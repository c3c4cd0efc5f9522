"""The store of recorded events, and the writers that read from it."""

from hookline.events.outbox import Record, Row
from hookline.events.storage import EventStorage
from hookline.events.writer import WRITERS, Writer

__all__ = ["WRITERS", "EventStorage", "Record", "Row", "Writer"]
