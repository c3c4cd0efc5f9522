"""Several processes: how they were started, what they tell each other, how a model is spread over them, who keeps them waiting."""

from hookline.dist.launch import connect, disconnect, find_launch, started_before, tell_torchrun, torchrun_command
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
    "started_before",
    "tell_torchrun",
    "torchrun_command",
]
