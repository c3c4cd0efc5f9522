"""A word language model: the LSTM's hidden state is carried from batch to batch.

python examples/ports/word_language_model.py

The port keeps the hidden state in a buffer of the model, so that every checkpoint has it.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from hookline import BaseHook, Runner
from hookline.hooks import CheckpointHook, OptimizerHook

EPOCHS = 6
STEPS, COLUMNS, WIDTH = 16, 20, 48
Batches = list[tuple[Tensor, Tensor]]
Hidden = tuple[Tensor, Tensor]


class LanguageModel(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(WIDTH, words)

    def forward(self, words: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        outputs, hidden = self.lstm(self.dropout(self.embedding(words)), hidden)
        return self.head(self.dropout(outputs)).flatten(0, 1), hidden


def zeros() -> Tensor:
    return torch.zeros(2, 1, COLUMNS, WIDTH)


def read_text() -> tuple[int, Batches, Batches]:
    """Return the number of words, and the training and validation batches of a text."""
    words = re.findall(r"\w+|[^\w\s]", inspect.getsource(argparse))
    codes = {word: code for code, word in enumerate(dict.fromkeys(words))}
    text = torch.tensor([codes[word] for word in words])
    columns = text[: len(text) // COLUMNS * COLUMNS].view(COLUMNS, -1).t().contiguous()
    pieces = [columns[start : start + STEPS + 1] for start in range(0, len(columns) - 1, STEPS)]
    batches = [(piece[:-1], piece[1:].flatten()) for piece in pieces]
    cut = len(batches) * 9 // 10
    return len(codes), batches[:cut], batches[cut:]


def plain(epochs: int = EPOCHS) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    torch.manual_seed(0)
    count, train, val = read_text()
    model = LanguageModel(count)
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.25, patience=0)
    losses = []
    for _ in range(epochs):
        model.train()
        h, c = zeros()
        for words, targets in train:
            scores, (h, c) = model(words, (h.detach(), c.detach()))
            loss = nn.functional.cross_entropy(scores, targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        scheduler.step(evaluate(model, val))
    return model, optimizer, losses


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    total = count = 0.0
    h, c = zeros()
    for words, targets in batches:
        scores, (h, c) = model(words, (h, c))
        total += nn.functional.cross_entropy(scores, targets).item() * len(words)
        count += len(words)
    return total / count


class CarryingModel(LanguageModel):
    def __init__(self, words: int) -> None:
        super().__init__(words)
        self.hidden: Tensor
        self.val_hidden: Tensor
        self.register_buffer("hidden", zeros())
        self.register_buffer("val_hidden", zeros(), persistent=False)

    def train_step(self, batch):
        words, targets = batch
        scores, hidden = self(words, tuple(self.hidden))
        self.hidden = torch.stack(hidden).detach()
        return {"loss": nn.functional.cross_entropy(scores, targets)}

    def val_step(self, batch):
        words, targets = batch
        scores, hidden = self(words, tuple(self.val_hidden))
        self.val_hidden = torch.stack(hidden)
        return {"loss": nn.functional.cross_entropy(scores, targets)}


class ForgetHook(BaseHook):
    """Begin each epoch and each validation with an empty hidden state."""

    def before_train_iter(self, model, batch_idx):  # not before_train_epoch: a resume calls that
        if batch_idx == 0:
            model.hidden.zero_()

    def before_val_iter(self, model, batch_idx):
        if batch_idx == 0:
            model.val_hidden.zero_()


def ported(work_dir: str = "runs/word_language_model", epochs: int = EPOCHS, hooks=()) -> Runner:
    torch.manual_seed(0)
    count, train, val = read_text()
    model = CarryingModel(count)
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    runner = Runner(
        model,
        train_loader=train,
        val_loader=val,
        optimizer=optimizer,
        scheduler=ReduceLROnPlateau(optimizer, factor=0.25, patience=0),
        hooks=[
            OptimizerHook(grad_clip={"max_norm": 0.25}),
            CheckpointHook(best_metric="val_loss"),
            ForgetHook(),
            *hooks,
        ],
        max_epochs=epochs,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
