"""The loops of training, validation and testing."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmengine.registry import LOOPS
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.dataset_meta import set_dataset_meta
from hookline.compat.mmengine.runner.train_loops import EpochBasedTrainLoop, IterBasedTrainLoop

__all__ = ["EpochBasedTrainLoop", "IterBasedTrainLoop", "TestLoop", "ValLoop"]


class _EvaluationLoop(BaseLoop):
    """One pass over the data. As in MMEngine, the model stays in evaluation mode."""

    mode = ""

    def __init__(self, runner: Any, dataloader: Any, evaluator: Any) -> None:
        super().__init__(runner, dataloader)
        self.evaluator = runner.build_evaluator(evaluator)
        set_dataset_meta(self.dataloader, runner.visualizer, self.evaluator)

    def run(self) -> dict[str, Any]:
        """Evaluate the model and return the metrics."""
        runner = self.runner
        mode = self.mode
        runner.call_hook(f"before_{mode}")
        runner.call_hook(f"before_{mode}_epoch")
        runner.model.eval()
        for idx, data_batch in enumerate(self.dataloader):
            self.run_iter(idx, data_batch)
        metrics: dict[str, Any] = self.evaluator.evaluate(len(self.dataloader.dataset))
        runner.call_hook(f"after_{mode}_epoch", metrics=metrics)
        runner.call_hook(f"after_{mode}")
        return metrics

    @torch.no_grad()
    def run_iter(self, idx: int, data_batch: Any) -> None:
        """Evaluate the model on one batch."""
        runner = self.runner
        mode = self.mode
        runner.call_hook(f"before_{mode}_iter", batch_idx=idx, data_batch=data_batch)
        outputs = getattr(runner.model, f"{mode}_step")(data_batch)
        self.evaluator.process(data_samples=outputs, data_batch=data_batch)
        runner.call_hook(
            f"after_{mode}_iter", batch_idx=idx, data_batch=data_batch, outputs=outputs
        )


@LOOPS.register_module()
class ValLoop(_EvaluationLoop):
    """Validates with an evaluator."""

    mode = "val"


@LOOPS.register_module()
class TestLoop(_EvaluationLoop):
    """Tests with an evaluator."""

    __test__ = False  # pytest would collect the class because of its name
    mode = "test"
