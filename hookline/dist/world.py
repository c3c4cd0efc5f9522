"""The processes of a job, and the few small things that they tell each other."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

HEADER = 8  # bytes that say how long a message is
SHORT = 1016  # longer messages take a second collective


@dataclass(frozen=True)
class World:
    """How many processes work on this run, and which of them this is. Every method is called by all of them, or by none."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def gather(self, message: bytes) -> list[bytes]:
        """The messages of all processes, by rank; in one collective if all are short."""
        if self.size == 1:
            return [message]
        heads = self._gather(len(message).to_bytes(HEADER, "big") + message[:SHORT], HEADER + SHORT)
        lengths = [int.from_bytes(head[:HEADER], "big") for head in heads]
        if max(lengths) <= SHORT:
            return [head[HEADER : HEADER + length] for head, length in zip(heads, lengths, strict=True)]
        return [whole[:length] for whole, length in zip(self._gather(message, max(lengths)), lengths, strict=True)]

    def gather_text(self, text: str) -> list[str]:
        return [message.decode() for message in self.gather(text.encode())]

    def main_says(self, text: str) -> str:
        """What the main process says; the others' words count for nothing."""
        return self.gather_text(text if self.is_main else "")[0]

    def sum(self, values: list[float]) -> list[float]:
        """The sums over all processes, in double precision."""
        if self.size == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64, device=_device())
        dist.all_reduce(total)
        return [float(value) for value in total.tolist()]

    def barrier(self) -> None:
        """Return when every process has come here."""
        self.gather(b"")

    def broadcast_buffers(self, buffers: Iterable[Tensor]) -> None:
        """Give all processes the main one's buffers."""
        if self.size > 1:
            for buffer in buffers:
                dist.broadcast(buffer, 0)

    def _gather(self, message: bytes, length: int) -> list[bytes]:
        mine = torch.frombuffer(bytearray(message.ljust(length, b"\0")), dtype=torch.uint8).to(_device())
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine)
        return [bytes(part.cpu().numpy()) for part in parts]


def current_world() -> World:
    """The world of this process; one of its own where `torch.distributed` is not in use."""
    if dist.is_available() and dist.is_initialized():
        return World(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")))
    return World()


def _device() -> str:
    """Where small messages travel: a group that the user made for NCCL alone takes nothing from the CPU."""
    return "cuda" if dist.get_backend() == "nccl" else "cpu"
