from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from hookline.errors import HooklineError
from hookline.step import computes_loss, make_step, unused_steps

INPUTS = torch.ones(2, 3)
TARGETS = torch.zeros(2, dtype=torch.int64)


class Scoring(nn.Module):
    """A model that computes its loss in a way that the test gives."""

    def __init__(self, answer: Callable[..., object]) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x, labels=None):
        return self.answer(x, labels)


class Own(nn.Module):
    """A model with steps of its own."""

    def train_step(self, batch):
        return {"loss": batch, "extra": 1}

    def val_step(self, batch):
        return {"predictions": batch, "targets": 2}


def notes_of(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", []))


@pytest.mark.parametrize(
    "batch", [(INPUTS, TARGETS), [INPUTS, TARGETS], {"x": INPUTS, "y": TARGETS}]
)
def test_a_batch_becomes_loss_predictions_and_targets(batch: object) -> None:
    model = nn.Linear(3, 4)
    outputs = make_step(model, "train_step", nn.CrossEntropyLoss())(batch)
    assert torch.equal(outputs["predictions"], model(INPUTS))
    assert outputs["targets"] is TARGETS
    assert outputs["loss"] == nn.functional.cross_entropy(model(INPUTS), TARGETS)


class StepsOfLightning(nn.Linear):
    """A model whose steps have the names and the arguments of Lightning."""

    def training_step(self, batch, batch_idx): ...

    def validation_step(self, batch, batch_idx): ...

    def test_step(self, batch, batch_idx): ...


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("train_step", "training_step, as for Lightning, and no train_step"),
        ("val_step", "validation_step, as for Lightning, and no val_step"),
        ("test_step", "the second argument of test_step is the optimizer, and not 'batch_idx'"),
    ],
)
def test_a_step_of_lightning_is_refused_with_its_name_here(method: str, message: str) -> None:
    with pytest.raises(HooklineError, match=message):
        make_step(StepsOfLightning(3, 4), method)


def test_steps_that_only_lightning_calls_are_known() -> None:
    model = StepsOfLightning(3, 4)
    assert unused_steps(model) == {"training_step": "train_step", "validation_step": "val_step"}
    model.val_step = model.validation_step
    assert unused_steps(model) == {"training_step": "train_step"}
    assert make_step(model, "train_step", nn.CrossEntropyLoss())((INPUTS, TARGETS))["loss"] > 0


def test_training_calls_the_wrapper_of_the_model() -> None:
    wrapper = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    step = make_step(wrapper[0], "train_step", nn.CrossEntropyLoss(), train_module=wrapper)
    assert torch.equal(step((INPUTS, TARGETS))["predictions"], wrapper(INPUTS))


def test_an_error_of_the_model_names_its_input() -> None:
    with pytest.raises(RuntimeError) as caught:
        make_step(nn.Linear(5, 4), "train_step", nn.CrossEntropyLoss())((INPUTS, TARGETS))
    assert "[2, 3] (float32)" in notes_of(caught.value)


def test_an_error_of_the_loss_names_its_input() -> None:
    step = make_step(nn.Linear(3, 4), "train_step", nn.CrossEntropyLoss())
    with pytest.raises(ValueError) as caught:
        step((INPUTS, TARGETS[:1]))
    assert "[2, 4] (float32)" in notes_of(caught.value)
    assert "train_step" not in notes_of(caught.value)


def test_an_error_of_the_loss_advises_a_step_for_a_model_with_several_results() -> None:
    step = make_step(Scoring(lambda x, labels: (x, x)), "train_step", nn.CrossEntropyLoss())
    with pytest.raises(TypeError) as caught:
        step((INPUTS, TARGETS))
    assert "train_step" in notes_of(caught.value)


@pytest.mark.parametrize(
    ("answer", "predictions"),
    [
        ({"loss": 1.0, "logits": 2}, 2),
        ({"loss": 1.0, "predictions": 3}, 3),
        (SimpleNamespace(loss=1.0, logits=4), 4),
    ],
)
def test_a_model_may_compute_its_loss(answer: object, predictions: object) -> None:
    step = make_step(Scoring(lambda x, labels: answer), "train_step")
    batch = {"x": INPUTS, "labels": TARGETS}
    assert step(batch) == {"loss": 1.0, "predictions": predictions, "targets": TARGETS}


def test_a_model_that_computes_its_loss_may_state_its_number_of_terms() -> None:
    step = make_step(Scoring(lambda x, labels: {"loss": 1.0, "num_tokens": 5}), "train_step")
    assert step({"x": INPUTS, "labels": TARGETS})["num_tokens"] == 5


@pytest.mark.parametrize("batch", [(INPUTS, TARGETS), INPUTS])
def test_a_model_without_a_loss_function_is_called_with_the_whole_batch(batch: object) -> None:
    seen = []
    step = make_step(
        Scoring(lambda x, labels: seen.append((x, labels)) or torch.ones(())), "train_step"
    )
    outputs = step(batch)
    assert seen[0][0] is INPUTS
    assert seen[0][1] is (TARGETS if isinstance(batch, tuple) else None)
    assert outputs == {"loss": torch.ones(()), "predictions": None, "targets": None}


def test_a_loss_is_needed_in_training_only() -> None:
    model = Scoring(lambda x, labels: {"logits": x})
    with pytest.raises(HooklineError):
        make_step(model, "train_step")(INPUTS)
    assert make_step(model, "val_step")(INPUTS)["loss"] is None


def test_a_batch_that_does_not_fit_the_model_is_explained() -> None:
    model = Scoring(lambda x, labels: torch.ones(()))
    with pytest.raises(HooklineError, match="loss_fn"):
        make_step(model, "train_step")((1, 2, 3))


def test_a_type_error_inside_the_model_stays_one() -> None:
    with pytest.raises(TypeError) as caught:
        make_step(Scoring(lambda x, labels: x + "a"), "train_step")((1, 2))
    assert "a tuple of 2" in notes_of(caught.value)


def test_the_steps_of_a_model_are_used() -> None:
    expected = {"loss": 7, "extra": 1, "predictions": None, "targets": None}
    assert make_step(Own(), "train_step")(7) == expected
    for method in ("val_step", "test_step"):
        assert make_step(Own(), method)(7) == {"predictions": 7, "targets": 2}


def test_a_step_with_two_arguments_gets_the_optimizer() -> None:
    class Classic(nn.Module):
        def train_step(self, batch, optimizer):
            return {"loss": optimizer}

    assert make_step(Classic(), "train_step", optimizer="sgd")(1)["loss"] == "sgd"


def test_a_step_with_an_optional_optimizer_gets_it() -> None:
    class Relaxed(nn.Module):
        def train_step(self, batch, optimizer=None):
            return {"loss": optimizer}

    class Scaled(nn.Module):
        def train_step(self, batch, scale=2.0):
            return {"loss": scale}

    assert make_step(Relaxed(), "train_step", optimizer="sgd")(1)["loss"] == "sgd"
    assert make_step(Scaled(), "train_step", optimizer="sgd")(1)["loss"] == 2.0


def test_an_error_of_a_models_own_step_names_what_it_got() -> None:
    class Unpacked(nn.Module):
        def train_step(self, inputs, targets):
            return {"loss": nn.functional.cross_entropy(inputs, targets)}

        def val_step(self, batch):
            raise RuntimeError("no way")

    with pytest.raises(TypeError) as caught:
        make_step(Unpacked(), "train_step", optimizer="sgd")((INPUTS, TARGETS))
    assert (
        "Unpacked.train_step got a tuple of 2: [2, 3] (float32), [2] (int64) and the optimizer"
        in (notes_of(caught.value))
    )
    with pytest.raises(RuntimeError) as failed:
        make_step(Unpacked(), "val_step", optimizer="sgd")([INPUTS])
    assert notes_of(failed.value).endswith("Unpacked.val_step got a list of 1: [2, 3] (float32)")


@pytest.mark.parametrize(("method", "result"), [("train_step", {"los": 1}), ("val_step", 3)])
def test_a_step_must_return_a_dict_with_a_loss(method: str, result: object) -> None:
    model = nn.Module()
    setattr(model, method, lambda batch: result)
    with pytest.raises(HooklineError, match=f"Module.{method}"):
        make_step(model, method)(1)


def test_a_model_that_takes_labels_computes_its_loss():
    class Scoring(torch.nn.Module):
        def forward(self, inputs, labels=None):
            return {"loss": inputs.sum()}

    class Wrapped(torch.nn.Module):
        def forward(self, *args, **named):
            raise NotImplementedError

        def get_base_model(self):
            return Scoring()

    assert computes_loss(Scoring())
    assert computes_loss(Wrapped())
    assert not computes_loss(torch.nn.Linear(1, 1))
