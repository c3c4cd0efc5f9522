"""Cross-validation: one model for each of four folds.

python examples/ports/k_fold.py

The port has one runner and one directory for each fold. Started again, it leaves finished folds
alone and continues the interrupted one.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset

from hookline import Runner
from hookline.data.digits import Digits

EPOCHS = 3
FOLDS = 4


def make(fold: int) -> tuple[nn.Module, torch.optim.Optimizer, DataLoader, DataLoader]:
    """Return a new model, its optimizer, and the loaders of a fold."""
    digits = Digits("train")
    indices = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0)).tolist()
    val = indices[fold::FOLDS]
    train = [index for place, index in enumerate(indices) if place % FOLDS != fold]
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(Subset(digits, train), 64, shuffle=True)
    return model, optimizer, loader, DataLoader(Subset(digits, val), 256)


def plain(epochs: int = EPOCHS) -> list[tuple[nn.Module, torch.optim.Optimizer, list[float]]]:
    torch.manual_seed(0)
    folds = []
    scores = []
    score = 0.0
    for fold in range(FOLDS):
        model, optimizer, train, val = make(fold)
        losses = []
        for _ in range(epochs):
            model.train()
            for images, labels in train:
                loss = nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            score = evaluate(model, val)
        scores.append(score)
        folds.append((model, optimizer, losses))
    print(f"accuracy {sum(scores) / FOLDS:.4f}")
    return folds


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right = count = 0
    for images, labels in loader:
        right += int((model(images).argmax(1) == labels).sum())
        count += len(labels)
    return right / count


def ported(work_dir: str = "runs/k_fold", epochs: int = EPOCHS, hooks=()) -> list[Runner]:
    torch.manual_seed(0)
    runners = []
    for fold in range(FOLDS):
        model, optimizer, train, val = make(fold)
        runner = Runner(
            model,
            train_loader=train,
            val_loader=val,
            optimizer=optimizer,
            loss_fn=nn.CrossEntropyLoss(),
            metrics=["accuracy"],
            hooks=hooks,
            max_epochs=epochs,
            work_dir=f"{work_dir}/fold_{fold}",
            resume="auto",
        )
        runners.append(runner.train())
    print(f"accuracy {sum(runner.metrics['accuracy'] for runner in runners) / FOLDS:.4f}")
    return runners


if __name__ == "__main__":
    for (model, _, _), runner in zip(plain(), ported(), strict=True):
        state = runner.model.state_dict()
        weights = model.state_dict()
        print("same weights:", all(torch.equal(state[name], weights[name]) for name in weights))
