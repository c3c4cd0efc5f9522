"""A wrapper of models for several ranks. That of MMCV 1.7.2 needs an older torch."""

from __future__ import annotations

import importlib
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from hookline.compat import overlay


class MMDistributedDataParallel(DistributedDataParallel):
    """`DistributedDataParallel` that averages the gradients of `train_step` too."""

    def _run_ddp_forward(self, *args: Any, _method: str | None = None, **kwargs: Any) -> Any:
        # DDP only prepares its reducer in `forward`, which calls this method, as in MMCV.
        args, kwargs = self._unpack(args, kwargs)
        if _method is None:
            return super()._run_ddp_forward(*args, **kwargs)  # type: ignore[no-untyped-call]
        return getattr(self.module, _method)(*args, **kwargs)

    def train_step(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, _method="train_step", **kwargs)

    def val_step(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._unpack(args, kwargs)
        return self.module.val_step(*args, **kwargs)

    def _unpack(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Move a batch to the GPU of this rank, and unpack MMCV's DataContainers in it."""
        if not self.device_ids or overlay.find("mmcv") is None:
            return args, kwargs
        scatter = importlib.import_module("mmcv.parallel.scatter_gather")
        all_args, all_kwargs = scatter.scatter_kwargs(args, kwargs, self.device_ids, dim=self.dim)
        return all_args[0], all_kwargs[0]
