from __future__ import annotations

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hookline.optim.sync import gradient_sync


class Sharded(nn.Linear):
    """A module with the method of FSDP2."""

    synced = True

    def set_requires_gradient_sync(self, enabled: bool) -> None:
        self.synced = enabled


def wrapper() -> DistributedDataParallel:
    """Return a wrapper without a process group, which its constructor would need."""
    module = DistributedDataParallel.__new__(DistributedDataParallel)
    nn.Module.__init__(module)
    module.require_backward_grad_sync = True
    return module


def test_a_plain_model_does_not_synchronize() -> None:
    assert gradient_sync(nn.Linear(1, 1)) is None


def test_every_wrapper_in_a_model_is_switched() -> None:
    model = nn.Sequential(wrapper(), nn.Linear(1, 1), wrapper())
    enable = gradient_sync(model)
    assert enable is not None
    enable(False)
    assert [model[0].require_backward_grad_sync, model[2].require_backward_grad_sync] == [False] * 2
    enable(True)
    assert [model[0].require_backward_grad_sync, model[2].require_backward_grad_sync] == [True] * 2


def test_a_sharded_model_is_switched_by_its_method() -> None:
    model = Sharded(1, 1)
    enable = gradient_sync(model)
    assert enable is not None
    enable(False)
    assert model.synced is False
