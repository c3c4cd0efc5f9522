"""Small parts for tests of hooks that draw."""

from __future__ import annotations

import torch
from torch import nn

from hookline.engine import BaseHook


class Records(BaseHook):
    """Collects the records of the events."""

    def __init__(self):
        self.records = []

    def before_run(self, runner):
        runner.events.listeners.append(self)

    def write_row(self, row):
        pass

    def write(self, record):
        self.records.append(record)

    def names(self):
        return [(record.name, record.iter) for record in self.records]


def images(count=4, size=5, channels=1, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.rand(size, channels, 8, 8, generator=generator),
            torch.randint(classes, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def conv_model(seed=0):
    torch.manual_seed(seed)
    body = (
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 6, 3),
        nn.ReLU(inplace=True),
    )
    return nn.Sequential(*body, nn.Dropout(0.5), nn.Flatten(), nn.Linear(6 * 36, 3))


class Transformer(nn.Module):
    """A vision transformer with a layer of `nn.MultiheadAttention` and one of fused attention."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.Conv2d(1, 16, 2, 2)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        self.fused = FusedAttention()
        self.head = nn.Linear(16, 3)

    def forward(self, inputs):
        tokens = self.patches(inputs).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1)
        return self.head(self.fused(self.layer(tokens))[:, 0])


class FusedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 48)

    def forward(self, tokens):
        query, key, value = self.project(tokens).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        return (
            nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.1)
            .transpose(1, 2)
            .flatten(2)
        )
