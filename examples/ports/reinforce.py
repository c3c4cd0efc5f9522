"""REINFORCE on a pole that must not fall; the environment lives on between two updates.

python examples/ports/reinforce.py

The port reads its batches from the environment: a loader with `state_dict`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from hookline import Runner

ITERS = 60
STEPS = 64
DISCOUNT = 0.98


class Pole:
    """A pole on a cart: push it left or right. A fallen pole is put up again."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.reset()

    def reset(self) -> None:
        start = torch.rand(4, generator=self.generator, dtype=torch.float64) * 0.1 - 0.05
        self.x, self.speed, self.angle, self.spin = start.tolist()
        self.steps = 0

    def observe(self) -> Tensor:
        return torch.tensor([self.x, self.speed, self.angle, self.spin])

    def push(self, action: int) -> bool:
        """Move on by 20 ms; return whether the pole has fallen."""
        sine, cosine = math.sin(self.angle), math.cos(self.angle)
        push = (10.0 if action else -10.0) + 0.05 * self.spin**2 * sine
        turn = (9.8 * sine - cosine * push / 1.1) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        self.x += 0.02 * self.speed
        self.speed += 0.02 * (push / 1.1 - 0.05 * turn * cosine / 1.1)
        self.angle += 0.02 * self.spin
        self.spin += 0.02 * turn
        self.steps += 1
        has_fallen = abs(self.x) > 2.4 or abs(self.angle) > 0.2 or self.steps == 200
        if has_fallen:
            self.reset()
        return has_fallen


class Policy(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))

    def loss(self, states: Tensor, actions: Tensor, gains: Tensor) -> Tensor:
        return -(Categorical(logits=self(states)).log_prob(actions) * gains).mean()


@torch.no_grad()
def play(pole: Pole, policy: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    """Play some steps; return the states, the actions and the discounted, normalized rewards."""
    states, actions, falls = [], [], []
    for _ in range(STEPS):
        states.append(pole.observe())
        actions.append(Categorical(logits=policy(states[-1])).sample())
        falls.append(pole.push(int(actions[-1])))
    gains = []
    gain = 0.0
    for has_fallen in reversed(falls):
        gain = 0.0 if has_fallen else 1.0 + DISCOUNT * gain
        gains.append(gain)
    values = torch.tensor(gains[::-1])
    return torch.stack(states), torch.stack(actions), (values - values.mean()) / values.std()


def make(kind: type[Policy]) -> tuple[Policy, torch.optim.Optimizer, Pole]:
    torch.manual_seed(0)
    policy = kind()
    return policy, torch.optim.Adam(policy.parameters(), lr=1e-2), Pole(seed=1)


def plain(iters: int = ITERS) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    policy, optimizer, pole = make(Policy)
    losses = []
    for _ in range(iters):
        loss = policy.loss(*play(pole, policy))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return policy, optimizer, losses


class SteppingPolicy(Policy):
    def train_step(self, batch):
        return {"loss": self.loss(*batch)}


class Games:
    """A loader whose batches are games with the current policy."""

    def __init__(self, pole: Pole, policy: nn.Module) -> None:
        self.pole = pole
        self.policy = policy

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while True:
            yield play(self.pole, self.policy)

    def state_dict(self) -> dict[str, object]:
        pole = vars(self.pole)
        return {**pole, "generator": self.pole.generator.get_state()}

    def load_state_dict(self, state: dict) -> None:
        self.pole.generator.set_state(state.pop("generator"))
        vars(self.pole).update(state)


def ported(work_dir: str = "runs/reinforce", iters: int = ITERS, hooks=()) -> Runner:
    policy, optimizer, pole = make(SteppingPolicy)
    runner = Runner(
        policy,
        train_loader=Games(pole, policy),
        optimizer=optimizer,
        hooks=hooks,
        max_iters=iters,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
