"""The loops of validation and testing."""

from __future__ import annotations

import logging
from typing import Any

import torch

from hookline.compat.mmengine.logging import HistoryBuffer, print_log
from hookline.compat.mmengine.registry import LOOPS
from hookline.compat.mmengine.runner.amp import autocast
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.structures import BaseDataElement


class _EvaluationLoop(BaseLoop):
    """One pass over the data. As in MMEngine, the model stays in evaluation mode."""

    mode = ""

    def __init__(self, runner: Any, dataloader: Any, evaluator: Any, fp16: bool = False) -> None:
        super().__init__(runner, dataloader)
        if isinstance(evaluator, (dict, list)):
            evaluator = runner.build_evaluator(evaluator)
        self.evaluator = evaluator
        set_dataset_meta(self.dataloader, runner.visualizer, self.evaluator)
        self.fp16 = fp16
        self._losses: dict[str, HistoryBuffer] = {}

    def run(self) -> dict[str, Any]:
        """Evaluate the model and return the metrics."""
        runner = self.runner
        mode = self.mode
        runner.call_hook(f"before_{mode}")
        runner.call_hook(f"before_{mode}_epoch")
        runner.model.eval()
        self._losses.clear()
        for idx, data_batch in enumerate(self.dataloader):
            self.run_iter(idx, data_batch)
        metrics: dict[str, Any] = self.evaluator.evaluate(len(self.dataloader.dataset))
        if self._losses:
            metrics.update(self._mean_losses())
        runner.call_hook(f"after_{mode}_epoch", metrics=metrics)
        runner.call_hook(f"after_{mode}")
        return metrics

    @torch.no_grad()
    def run_iter(self, idx: int, data_batch: Any) -> None:
        """Evaluate the model on one batch."""
        runner = self.runner
        mode = self.mode
        runner.call_hook(f"before_{mode}_iter", batch_idx=idx, data_batch=data_batch)
        with autocast(enabled=self.fp16):
            outputs = getattr(runner.model, f"{mode}_step")(data_batch)
        outputs = self._take_losses(outputs)
        self.evaluator.process(data_samples=outputs, data_batch=data_batch)
        runner.call_hook(
            f"after_{mode}_iter", batch_idx=idx, data_batch=data_batch, outputs=outputs
        )

    def _take_losses(self, outputs: Any) -> Any:
        """Record the losses of a batch if its last output holds them; return the other outputs."""
        if not isinstance(outputs, (list, tuple)) or not outputs:
            return outputs
        last = outputs[-1]
        if not isinstance(last, BaseDataElement) or last.keys() != ["loss"]:
            return outputs
        for name, value in last.get("loss").items():
            history = self._losses.setdefault(name, HistoryBuffer())
            parts = value if isinstance(value, (list, tuple)) else [value]
            for part in parts:
                history.update(part)
        return outputs[:-1]

    def _mean_losses(self) -> dict[str, Any]:
        """Return the mean of each loss, and the sum of the means as `val_loss` or `test_loss`."""
        means = {}
        total = 0.0
        for name, history in self._losses.items():
            means[name] = history.mean()
            if "loss" in name:
                total += means[name]
        return {**means, f"{self.mode}_loss": total}


@LOOPS.register_module()
class ValLoop(_EvaluationLoop):
    """Validates with an evaluator."""

    mode = "val"
    val_loss = property(lambda self: self._losses)


@LOOPS.register_module()
class TestLoop(_EvaluationLoop):
    """Tests with an evaluator."""

    __test__ = False  # pytest would collect the class because of its name
    mode = "test"
    test_loss = property(lambda self: self._losses)


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
