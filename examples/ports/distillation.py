"""A small student learns from a large teacher and from the labels.

python examples/ports/distillation.py

The port has both in one model, whose `train` leaves the teacher in evaluation mode.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax
from torch.utils.data import DataLoader

from hookline import Runner
from hookline.data.digits import Digits

EPOCHS = 5
HEAT = 2.0


def make_net(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(width, 10),
    )


def loaders() -> tuple[DataLoader, DataLoader]:
    train, val = Digits("train"), Digits("val")
    return DataLoader(train, 64, shuffle=True), DataLoader(val, 256)


def make() -> tuple[nn.Module, nn.Module]:
    """Return a new student and a trained teacher."""
    torch.manual_seed(0)
    teacher = make_net(128)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for images, labels in loaders()[0]:
        optimizer.zero_grad()
        cross_entropy(teacher(images), labels).backward()
        optimizer.step()
    return make_net(16), teacher.eval().requires_grad_(False)


def loss_of(scores: Tensor, wanted: Tensor, labels: Tensor) -> Tensor:
    soft = kl_div(
        log_softmax(scores / HEAT, 1),
        log_softmax(wanted / HEAT, 1),
        reduction="batchmean",
        log_target=True,
    )
    return 0.7 * HEAT**2 * soft + 0.3 * cross_entropy(scores, labels)


def plain(epochs: int = EPOCHS) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    student, teacher = make()
    train, val = loaders()
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    losses = []
    for epoch in range(epochs):
        student.train()
        for images, labels in train:
            with torch.no_grad():
                wanted = teacher(images)
            loss = loss_of(student(images), wanted, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        student.eval()
        right = count = 0
        with torch.no_grad():
            for images, labels in val:
                right += int((student(images).argmax(1) == labels).sum())
                count += len(labels)
        print(f"epoch {epoch + 1}: accuracy {right / count:.4f}")
    return student, optimizer, losses


class Distillation(nn.Module):
    def __init__(self, student: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.student = student
        self.teacher = teacher

    def train(self, mode: bool = True) -> Distillation:
        super().train(mode)
        self.teacher.eval()
        return self

    def train_step(self, batch):
        images, labels = batch
        with torch.no_grad():
            wanted = self.teacher(images)
        return {"loss": loss_of(self.student(images), wanted, labels)}

    def val_step(self, batch):
        images, labels = batch
        return {"predictions": self.student(images), "targets": labels}


def ported(work_dir: str = "runs/distillation", epochs: int = EPOCHS, hooks=()) -> Runner:
    student, teacher = make()
    train, val = loaders()
    runner = Runner(
        Distillation(student, teacher),
        train_loader=train,
        val_loader=val,
        optimizer=torch.optim.Adam(student.parameters(), lr=3e-3),
        metrics=["accuracy"],
        hooks=hooks,
        max_epochs=epochs,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.get_submodule("student").state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
