"""The writers that come with the package; importing this registers them."""

from hookline.events.console import ConsoleWriter
from hookline.events.jsonl import JSONLinesWriter

__all__ = ["ConsoleWriter", "JSONLinesWriter"]
