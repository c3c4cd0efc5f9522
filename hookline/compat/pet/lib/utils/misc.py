"""Logging on rank 0."""

from __future__ import annotations

import logging

from hookline.compat.pet.lib.utils.comm import is_main_process

logger = logging.getLogger("hookline.pet")


def logging_rank(*parts: object, **kwargs: object) -> None:
    """Log on rank 0; the keywords with which Pet passes the rank are ignored."""
    if is_main_process():
        logger.info(" ".join(str(part) for part in parts))
