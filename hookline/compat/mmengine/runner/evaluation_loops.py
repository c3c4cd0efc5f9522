"""The loops of validation and test."""

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
    """One pass over the data; the model is left in evaluation mode, as MMEngine does it."""

    mode = ""

    def __init__(self, runner: Any, dataloader: Any, evaluator: Any, fp16: bool = False) -> None:
        super().__init__(runner, dataloader)
        self.evaluator = runner.build_evaluator(evaluator) if isinstance(evaluator, (dict, list)) else evaluator
        note_dataset_meta(self.dataloader, runner.visualizer, self.evaluator)
        self.fp16 = fp16
        self._losses: dict[str, HistoryBuffer] = {}

    def run(self) -> dict[str, Any]:
        runner, mode = self.runner, self.mode
        runner.call_hook(f"before_{mode}")
        runner.call_hook(f"before_{mode}_epoch")
        runner.model.eval()
        self._losses.clear()
        for idx, data_batch in enumerate(self.dataloader):
            self.run_iter(idx, data_batch)
        metrics = self.evaluator.evaluate(len(self.dataloader.dataset))
        if self._losses:
            means = {name: values.mean() for name, values in self._losses.items()}
            metrics.update(means, **{f"{mode}_loss": sum(value for name, value in means.items() if "loss" in name)})
        runner.call_hook(f"after_{mode}_epoch", metrics=metrics)
        runner.call_hook(f"after_{mode}")
        return metrics  # type: ignore[no-any-return]

    @torch.no_grad()
    def run_iter(self, idx: int, data_batch: Any) -> None:
        runner, mode = self.runner, self.mode
        runner.call_hook(f"before_{mode}_iter", batch_idx=idx, data_batch=data_batch)
        with autocast(enabled=self.fp16):
            outputs = getattr(runner.model, f"{mode}_step")(data_batch)
        outputs = self._take_losses(outputs)
        self.evaluator.process(data_samples=outputs, data_batch=data_batch)
        runner.call_hook(f"after_{mode}_iter", batch_idx=idx, data_batch=data_batch, outputs=outputs)

    def _take_losses(self, outputs: Any) -> Any:
        """Outputs without their last element, if that holds the batch's losses."""
        last = outputs[-1] if isinstance(outputs, (list, tuple)) and outputs else None
        if not isinstance(last, BaseDataElement) or last.keys() != ["loss"]:
            return outputs
        for name, value in last.get("loss").items():
            for part in value if isinstance(value, (list, tuple)) else [value]:
                self._losses.setdefault(name, HistoryBuffer()).update(part)
        return outputs[:-1]


@LOOPS.register_module()
class ValLoop(_EvaluationLoop):
    """Validates with an evaluator."""

    mode = "val"
    val_loss = property(lambda self: self._losses)


@LOOPS.register_module()
class TestLoop(_EvaluationLoop):
    """Tests with an evaluator."""

    __test__ = False  # it is no test case, whatever pytest thinks of its name
    mode = "test"
    test_loss = property(lambda self: self._losses)


def note_dataset_meta(dataloader: Any, *readers: Any) -> None:
    """Tell what the data set says about itself (its classes, say)."""
    dataset: Any = getattr(dataloader, "dataset", None)
    if not hasattr(dataset, "metainfo"):
        print_log(f"Dataset {type(dataset).__name__} has no metainfo: ``dataset_meta`` will be None.", "current", logging.WARNING)
        return
    for reader in readers:
        reader.dataset_meta = dataset.metainfo
