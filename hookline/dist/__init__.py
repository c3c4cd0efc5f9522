"""Distributed training: launch, collectives, strategies and the watchdog."""

from hookline.dist.launch import (
    connect,
    disconnect,
    find_launch,
    first_launch_time,
    report_to_torchrun,
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
    "first_launch_time",
    "replicate",
    "report_to_torchrun",
    "torchrun_command",
]
