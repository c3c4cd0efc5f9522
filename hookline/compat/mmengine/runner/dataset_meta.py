"""Pass the metainfo of a data set to other objects."""

from __future__ import annotations

import logging
from typing import Any

from hookline.compat.mmengine.logging import print_log


def set_dataset_meta(dataloader: Any, *readers: Any) -> None:
    """Pass the metainfo of the data set, such as its classes, to other objects."""
    dataset: Any = getattr(dataloader, "dataset", None)
    if not hasattr(dataset, "metainfo"):
        print_log(
            f"Dataset {type(dataset).__name__} has no metainfo: ``dataset_meta`` will be None.",
            "current",
            logging.WARNING,
        )
        return
    for reader in readers:
        reader.dataset_meta = dataset.metainfo
