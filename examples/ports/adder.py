"""A small GPT learns to add numbers of two digits; its sampler draws with replacement, for ever.

python examples/ports/adder.py

The port has a length in iterations, and validates in the middle of the endless epoch.
"""

from __future__ import annotations

from itertools import islice

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, Subset

from hookline import Runner
from hookline.hooks import CheckpointHook, EvalHook, OptimizerHook

ITERS = 400
DIGITS = 2
LENGTH = 3 * DIGITS  # a and b, and the digits of the sum but the last, which is only a target
WIDTH = 48
HIDDEN = -100  # a position without a target


class Sums(Dataset):
    """`a b (a+b)` as digits, the sum reversed; the targets are the digits of the sum."""

    def __len__(self) -> int:
        return 10 ** (2 * DIGITS)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        a, b = divmod(index, 10**DIGITS)
        total = f"{a + b:0{DIGITS + 1}d}"[::-1]
        digits = torch.tensor([int(digit) for digit in f"{a:0{DIGITS}d}{b:0{DIGITS}d}{total}"])
        targets = digits[1:].clone()
        targets[: 2 * DIGITS - 1] = HIDDEN
        return digits[:-1], targets


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.digits = nn.Embedding(10, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 10)
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, digits: Tensor) -> Tensor:
        hidden = self.digits(digits) + self.positions
        return self.head(self.body(hidden, self.mask, is_causal=True)).transpose(1, 2)


def make() -> tuple[GPT, torch.optim.Optimizer, DataLoader, DataLoader]:
    torch.manual_seed(0)
    model = GPT()
    decayed = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95))
    sums = Sums()
    order = torch.randperm(len(sums)).tolist()
    train, val = Subset(sums, order[500:]), Subset(sums, order[:500])
    sampler = RandomSampler(train, replacement=True, num_samples=10**10)
    return model, optimizer, DataLoader(train, 32, sampler=sampler), DataLoader(val, 250)


def exact(scores: Tensor, targets: Tensor) -> float:
    """Return the share of sums with every digit right."""
    is_right = (scores.argmax(1) == targets) | (targets == HIDDEN)
    return float(is_right.all(1).double().mean())


def plain(
    iters: int = ITERS, interval: int = 100
) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    model, optimizer, train, val = make()
    losses = []
    for digits, targets in islice(train, iters):
        model.train()
        loss = nn.functional.cross_entropy(model(digits), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if len(losses) % interval == 0:
            model.eval()
            with torch.no_grad():
                shares = [exact(model(digits), targets) for digits, targets in val]
            print(f"iteration {len(losses)}: {sum(shares) / len(shares):.1%} exact")
    return model, optimizer, losses


def ported(
    work_dir: str = "runs/adder", iters: int = ITERS, interval: int = 100, hooks=()
) -> Runner:
    model, optimizer, train, val = make()
    runner = Runner(
        model,
        train_loader=train,
        val_loader=val,
        optimizer=optimizer,
        loss_fn=nn.CrossEntropyLoss(),
        metrics={"exact": exact},
        hooks=[
            OptimizerHook(grad_clip={"max_norm": 1.0}),
            EvalHook(interval=interval, by_epoch=False, metric="exact", rule="greater"),
            CheckpointHook(interval=interval, by_epoch=False, best_metric="exact"),
            *hooks,
        ],
        max_iters=iters,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
