"""Hookline: a training engine for PyTorch in which everything beyond the forward pass is a hook.

`__init__.pyi` lists the public names. Each one is imported on first use, so `import hookline` does
not import torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
