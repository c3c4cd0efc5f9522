"""Distributed training: launch, collectives, strategies and the watchdog."""

from hookline.dist.launch import (
    connect,
    disconnect,
    find_launch,
    report_to_torchrun,
    started_before,
    torchrun_command,
)
from hookline.dist.strategy import KINDS, Strategy, choose_strategy, replicate
from hookline.dist.world import World, current_world

__all__ = [
    "KINDS",
    "Strategy",
    "World",
    "choose_strategy",
    "connect",
    "current_world",
    "disconnect",
    "find_launch",
    "replicate",
    "report_to_torchrun",
    "started_before",
    "torchrun_command",
]
