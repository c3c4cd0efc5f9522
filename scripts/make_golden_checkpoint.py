"""Write tests/golden/checkpoint_<version>.pth, from which later releases must be able to resume.

Run it once for a release whose files differ from those of earlier ones. tests/test_golden.py
resumes from every file in that directory.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

from hookline import Runner, __version__, make_loader

FOLDER = Path(__file__).parents[1] / "tests" / "golden"
ITERS = 9


def golden_runner(work_dir: Path, iters: int = ITERS, resume: Path | None = None) -> Runner:
    """Build a small run with momentum, batch norm, dropout, shuffled data and hooks with state."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 3))
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(26, 6, generator=generator)
    targets = torch.randint(3, (26,), generator=generator)
    data = torch.utils.data.TensorDataset(inputs, targets)
    return Runner(
        model,
        train_loader=make_loader(data, batch_size=4, shuffle=True, seed=7),
        val_loader=make_loader(data, batch_size=13),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        max_iters=iters,
        seed=3,
        work_dir=work_dir,
        resume=resume,
        hooks=[{"type": "CheckpointHook", "interval": 3, "by_epoch": False}],
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        golden_runner(Path(folder)).train()
        target = FOLDER / f"checkpoint_{__version__}.pth"
        FOLDER.mkdir(exist_ok=True)
        shutil.copy(Path(folder) / "last.pth", target)
    print(target, file=sys.stderr)
