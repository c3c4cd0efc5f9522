"""`mmengine.device`: the device of a run."""

import torch

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE


def get_device() -> str:
    """Return the name of the best device."""
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


__getattr__ = not_covered(__name__, advice=ADVICE)
