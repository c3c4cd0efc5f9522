"""What is told."""

from __future__ import annotations

import logging

from hookline.compat.pet.lib.utils.comm import is_main_process

logger = logging.getLogger("hookline.pet")


def logging_rank(*parts: object, **kwargs: object) -> None:
    """Log on the main process; the keywords with which Pet says which process that is are not needed."""
    if is_main_process():
        logger.info(" ".join(str(part) for part in parts))
