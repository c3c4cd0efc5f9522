"""A character transformer that learns Python from the source of argparse: plain, then Hookline.

python examples/text.py            both, and their bits per character, with samples
python examples/text.py --quick    two epochs
"""

from __future__ import annotations

import argparse
import inspect
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookline import BaseHook, Runner

EPOCHS = 8
LENGTH = 64
TEXT = inspect.getsource(argparse)
LETTERS = sorted(set(TEXT))
CODES = torch.tensor([LETTERS.index(letter) for letter in TEXT])


class Windows(Dataset):
    """Pieces of the text, and the same one character later."""

    def __init__(self, codes: torch.Tensor, step: int) -> None:
        self.pieces = codes.unfold(0, LENGTH + 1, step)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pieces[index, :-1], self.pieces[index, 1:]


class Writer(nn.Module):
    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.positions = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(codes.shape[1], device=codes.device)
        hidden = self.letters(codes) + self.positions.weight[: codes.shape[1]]
        scores = self.head(self.body(hidden, mask, is_causal=True))
        return scores.transpose(1, 2)  # [N, letters, positions], for cross_entropy

    @torch.no_grad()
    def write(self, begin: str, count: int = 120) -> str:
        codes = [LETTERS.index(letter) for letter in begin]
        for _ in range(count):
            scores = self(torch.tensor([codes[-LENGTH:]]))[0, :, -1]
            codes.append(int(torch.multinomial((scores / 0.7).softmax(0), 1)))
        return "".join(LETTERS[code] for code in codes)


def loaders() -> tuple[DataLoader, DataLoader]:
    cut = int(len(CODES) * 0.9)
    train = DataLoader(Windows(CODES[:cut], LENGTH), 64, shuffle=True)
    val = DataLoader(Windows(CODES[cut:], LENGTH), 64)
    return train, val


def make_model() -> Writer:
    torch.manual_seed(0)
    return Writer()


def plain(epochs: int) -> float:
    train, val = loaders()
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    bits = 0.0
    for epoch in range(epochs):
        model.train()
        for codes, wanted in train:
            loss = nn.functional.cross_entropy(model(codes), wanted)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            total = count = 0.0
            for codes, wanted in val:
                total += nn.functional.cross_entropy(model(codes), wanted).item() * len(codes)
                count += len(codes)
        bits = total / count / math.log(2)
        print(f"epoch {epoch + 1}: {bits:.2f} bits per character")
    return bits


class Sample(BaseHook):
    """Record a text that the model writes, after each validation."""

    def after_val_epoch(self, runner, model, events):
        with torch.random.fork_rng():  # keep the random numbers of the training
            text = model.write("    def ")
        events.put_text("sample", text)
        runner.logger.info("%s", text)


def hookline(epochs: int) -> float:
    train, val = loaders()
    model = make_model()
    runner = Runner(
        model,
        train_loader=train,
        val_loader=val,
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[
            {"type": "OptimizerHook", "grad_clip": {"max_norm": 1.0}},
            {"type": "CheckpointHook", "best_metric": "val_loss"},
            Sample(),
        ],
        max_epochs=epochs,
        work_dir="runs/text",
    )
    runner.train()
    return runner.metrics["val_loss"] / math.log(2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two epochs, to see that it runs")
    epochs = 2 if parser.parse_args().quick else EPOCHS
    print(f"plain {plain(epochs):.3f}, hookline {hookline(epochs):.3f}")
