from __future__ import annotations

import io
import random
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import CheckpointStore
from hookline.verify import compare_runs
from hookline.verify.compare import compare_checkpoints
from hookline.verify.trace import BatchTraceHook
from tests.helpers import batches


def run(folder: Path) -> Runner:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 3))
    runner = Runner(
        model,
        train_loader=batches(7),
        val_loader=batches(2),
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        loss_fn=nn.CrossEntropyLoss(),
        max_iters=17,
        work_dir=folder,
        seed=3,
        hooks=[{"type": "CheckpointHook", "by_epoch": False, "interval": 5}],
    )
    return runner.train()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train once, and return the work directory."""
    return run(tmp_path_factory.mktemp("trained")).work_dir


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """Return a copy of the trained run."""
    return Path(shutil.copytree(trained, tmp_path / "copied"))


def test_two_equal_runs_do_not_differ(trained: Path, tmp_path: Path) -> None:
    again = run(tmp_path)
    assert not any(compare_runs(trained, again.work_dir).values())


def test_a_difference_is_found_and_named(trained: Path, copied: Path) -> None:
    store = CheckpointStore(copied)
    entry = store.latest()
    assert entry is not None
    checkpoint = store.load(entry)
    checkpoint["state_dict"]["0.weight"][0, 0] += 1e-6
    store.prepare()
    store.save(checkpoint, entry.name, step=entry.step, epoch=entry.epoch)
    store.unlock()
    subjects = compare_runs(trained, copied)
    assert [subject for subject, texts in subjects.items() if texts] == ["weights"]
    assert subjects["weights"][0].startswith("0.weight: 1 of 96 values differ")


def test_logs_with_line_separators_in_names_are_compared(trained: Path, copied: Path) -> None:
    with (copied / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"mode": "train", "a\u2028b\u0085c": 1.0}\n')
    assert compare_runs(trained, copied)["log"]


def test_a_log_with_a_double_point_is_found(trained: Path, copied: Path) -> None:
    log = copied / "log.jsonl"
    rows = log.read_text().splitlines(keepends=True)
    log.write_text("".join([rows[0], *rows]))
    assert compare_runs(trained, copied)["log"]
    log.write_text("".join(rows[:-1]))
    assert compare_runs(trained, copied)["log"] == [f"{len(rows)} entries and {len(rows) - 1}"]
    log.unlink()
    assert compare_runs(trained, copied)["log"]


def test_a_run_without_a_checkpoint_cannot_be_compared(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        compare_runs(trained, tmp_path)


def changed_parts(one: dict[str, object], two: dict[str, object]) -> list[str]:
    return [name for name, texts in compare_checkpoints(one, two).items() if texts]


@pytest.mark.parametrize(
    ("part", "one", "two"),
    [
        ("meta", {"iter": 1, "time": 1.0}, {"iter": 1, "time": 2.0}),
        ("events", {"loss": 1, "time": 1}, {"loss": 1, "time": 2}),
        ("events", {"system/cpu": 1, "throughput/now": 2}, {"memory/peak": 1, "time/step": 3}),
        ("hooks", {"A": {"elapsed_s": 1, "n": 1}}, {"A": {"elapsed_s": 2, "n": 1}}),
        ("hooks", {"A": {"run_id": "x", "b": {"eta": 1}}}, {"A": {"run_id": "y", "b": {"eta": 2}}}),
    ],
)
def test_times_memory_and_ids_are_not_compared(part: str, one: object, two: object) -> None:
    assert changed_parts({part: one}, {part: two}) == []


@pytest.mark.parametrize(
    ("part", "one", "two"),
    [
        ("meta", {"iter": 1}, {"iter": 2}),
        ("events", {"loss": 1}, {"loss": 2}),
        ("events", {"timer": 1}, {"timer": 2}),
        ("hooks", {"A": {"count": 1}}, {"A": {"count": 2}}),
        ("rng", {"time": 1}, {"time": 2}),
        ("number", 1, 2),
    ],
)
def test_everything_else_is_compared(part: str, one: object, two: object) -> None:
    assert changed_parts({part: one}, {part: two}) == [part]


def test_a_part_that_one_checkpoint_lacks_is_named() -> None:
    assert compare_checkpoints({"a": 1}, {"b": 1}) == {
        "a": ["only in the first"],
        "b": ["only in the second"],
    }


def test_configs_are_compared_without_the_place_of_the_run() -> None:
    def config(folder: str, lr: float = 0.1) -> dict[str, object]:
        hooks = [{"path": f"{folder}/log"}, {"path": f"{folder}_other"}]
        return {
            "meta": {"config": {"work_dir": folder, "resume": folder, "lr": lr, "hooks": hooks}}
        }

    assert changed_parts(config("a"), config("a")) == []
    assert changed_parts(config("a"), config("a", lr=0.2)) == ["config"]
    (text,) = compare_checkpoints(config("a"), config("b"))["config"]
    assert "hooks[1]" in text or "hooks.1" in text


def test_the_state_of_each_rank_is_compared() -> None:
    def packed(**state: object) -> torch.Tensor:
        file = io.BytesIO()
        torch.save(state, file)
        return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)

    one = {"by_rank": [packed(loader=1, events={"time": 1})]}
    assert changed_parts(one, {"by_rank": [packed(loader=1, events={"time": 2})]}) == []
    assert changed_parts(one, {"by_rank": [packed(loader=2, events={"time": 1})]}) == ["by_rank"]


class Windows:
    """An endless stream of batches that torch's global generator draws, without a state."""

    def __iter__(self):
        while True:
            yield torch.randn(8, 6), torch.randint(3, (8,))


def test_generators_without_a_seed_are_not_compared_where_a_stream_keeps_them_either(
    tmp_path: Path,
) -> None:
    def draw(folder: Path) -> Path:
        random.seed()
        torch.manual_seed(3)
        model = nn.Linear(6, 3)
        runner = Runner(
            model,
            train_loader=Windows(),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
            loss_fn=nn.CrossEntropyLoss(),
            max_iters=4,
            work_dir=folder,
            hooks=[BatchTraceHook()],
        )
        return runner.train().work_dir

    subjects = compare_runs(draw(tmp_path / "one"), draw(tmp_path / "two"))
    assert not any(subjects.values())
