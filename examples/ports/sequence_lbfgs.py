"""An LSTM continues sine waves, fitted with LBFGS, which calls a closure many times in a step.

python examples/ports/sequence_lbfgs.py

The port needs no closure: OptimizerHook makes one of the model and `loss_fn`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hookline import Runner

EPOCHS = 8
WIDTH = 16


class Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, waves: Tensor) -> Tensor:
        return self.head(self.lstm(waves)[0])


def make() -> tuple[Waves, torch.optim.LBFGS, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    model = Waves().double()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, history_size=10)
    times = torch.arange(60, dtype=torch.float64) + 20 * torch.rand(12, 1, dtype=torch.float64)
    waves = torch.sin(times / 4).unsqueeze(2)
    return model, optimizer, (waves[:, :-1], waves[:, 1:])


def plain(epochs: int = EPOCHS) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    model, optimizer, (waves, targets) = make()

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(waves), targets)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(epochs)]
    return model, optimizer, losses


def ported(work_dir: str = "runs/sequence_lbfgs", epochs: int = EPOCHS, hooks=()) -> Runner:
    model, optimizer, batch = make()
    runner = Runner(
        model,
        train_loader=[batch],
        optimizer=optimizer,
        loss_fn=nn.MSELoss(),
        hooks=hooks,
        max_epochs=epochs,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
