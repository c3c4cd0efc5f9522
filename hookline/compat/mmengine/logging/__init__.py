"""`mmengine.logging`: loggers, history buffers and the message hub."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.logging.history_buffer import HistoryBuffer
from hookline.compat.mmengine.logging.logger import MMLogger, print_log
from hookline.compat.mmengine.logging.message_hub import MessageHub

__all__ = ["HistoryBuffer", "MMLogger", "MessageHub", "print_log"]
__getattr__ = not_covered(__name__, __all__, advice=ADVICE)
