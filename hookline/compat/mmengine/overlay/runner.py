"""MMEngine's runner, with Hookline's hook dispatch, checkpoints and resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmengine.fileio import FileClient
from mmengine.fileio.backends import LocalBackend
from mmengine.registry import RUNNERS
from mmengine.runner.checkpoint import CheckpointLoader
from mmengine.runner.original_runner import Runner as OriginalRunner

from hookline.compat.mmengine.runner.checkpoint_methods import CheckpointMethods
from hookline.compat.mmengine.runner.engine_methods import EngineMethods
from hookline.compat.mmengine.runner.files import load_from_local
from hookline.compat.persistent_workers import follow_workers
from hookline.compat.work_dir import WorkDir

CheckpointLoader.register_scheme(prefixes="", loader=load_from_local, force=True)


@RUNNERS.register_module(force=True)
class Runner(CheckpointMethods, EngineMethods, OriginalRunner):  # type: ignore[misc]
    """MMEngine's runner. Requested checkpoints are written when all hooks of a stage have run."""

    _is_training = False
    _randomness_cfg: dict[str, Any]
    _work_dir: Any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        OriginalRunner.__init__(self, *arguments, **named)

    def setup_env(self, env_cfg: dict[str, Any]) -> None:
        """Set up the processes, and Hookline's engine, which needs the rank."""
        OriginalRunner.setup_env(self, env_cfg)
        if "loop" not in vars(self):
            self._work_dir = WorkDir(self._work_dir)
            self._begin_engine()

    def set_randomness(self, *arguments: Any, **named: Any) -> None:
        # A copy: resuming changes it, and the default is shared by all runners.
        self._randomness_cfg = dict(self._randomness_cfg)
        OriginalRunner.set_randomness(self, *arguments, **named)

    def register_hooks(self, default_hooks: Any = None, custom_hooks: Any = None) -> None:
        self._take_model()
        OriginalRunner.register_hooks(self, default_hooks, custom_hooks)

    @staticmethod
    def build_dataloader(
        dataloader: Any, seed: int | None = None, diff_rank_seed: bool = False
    ) -> Any:
        """Build a loader whose persistent workers resume with their random numbers."""
        built = OriginalRunner.build_dataloader(dataloader, seed, diff_rank_seed)
        return built if built is dataloader else follow_workers(built)

    def train(self) -> Any:
        """Train to the end, and return the model."""
        self._is_training = True
        try:
            return self._run(self._train, graceful=True)
        finally:
            self._is_training = False

    def val(self) -> Any:
        """Validate, and return the metrics."""
        return self._evaluate(OriginalRunner.val)

    def test(self) -> Any:
        """Test, and return the metrics."""
        return self._evaluate(OriginalRunner.test)

    def load_or_resume(self) -> None:
        """Load or resume once, as the constructor's `load_from` and `resume` demand.

        `train` calls this between building the optimizer and running the loop.
        """
        if self._is_training:
            self._take_optimizer()
        super().load_or_resume()
        if self._is_training:
            self._training_scope.enter_context(self._following_optimizer())

    def resume(self, filename: str | Path, *arguments: Any, **named: Any) -> None:
        """Continue from a checkpoint, written by Hookline or by MMEngine itself."""
        self._resume = True
        given = self._randomness_cfg.get("seed")
        OriginalRunner.resume(self, filename, *arguments, **named)
        sampler: Any = getattr(self.train_loop.dataloader, "sampler", None)
        if hasattr(sampler, "seed") and given is None:
            sampler.seed = self.seed  # the sampler was built with a random seed
        self.restore_exact_state(self._loaded_checkpoint)

    def load_checkpoint(self, filename: str | Path, *arguments: Any, **named: Any) -> Any:
        """Load weights, after hooks have loaded their part (`after_load_checkpoint`)."""
        self._loaded_checkpoint = OriginalRunner.load_checkpoint(
            self, filename, *arguments, **named
        )
        return self._loaded_checkpoint

    def save_checkpoint(  # type: ignore[override]
        self,
        out_dir: str | Path,
        filename: str,
        file_client_args: Any = None,
        *arguments: Any,
        backend_args: Any = None,
        **named: Any,
    ) -> None:
        """Write a checkpoint at once. A hook should call `request_write`: it waits for a seam."""
        client = FileClient.infer_client(file_client_args, out_dir)
        if backend_args is None and isinstance(client.client, LocalBackend):
            super().save_checkpoint(out_dir, filename, *arguments, **named)
            return
        named["backend_args"] = backend_args
        OriginalRunner.save_checkpoint(
            self, out_dir, filename, file_client_args, *arguments, **named
        )

    def _train(self) -> Any:
        self._begin_training()
        return OriginalRunner.train(self)

    def _evaluate(self, function: Callable[[Any], Any]) -> Any:
        self.best.reset()
        return self._run(lambda: function(self), graceful=False)
