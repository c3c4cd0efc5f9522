"""Which checkpoints are among the k best, and the file that lists them."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from hookline.checkpoint.best_files import (
    BestFile,
    BestFiles,
    admit,
    drop_worst,
    drop_worst_of_each,
    find_best_names,
    name_best,
    names_of,
    write_list,
)

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan, math.inf]), max_size=12)


def admit_all(values: list[float], limit: int, rule: str) -> tuple[BestFiles, list[str]]:
    best = BestFiles(rule=rule, checkpoints=[])
    dropped: list[str] = []
    for number, value in enumerate(values):
        new = BestFile(file=f"{number}", value=value, epoch=number, iter=number)
        best, surplus = drop_worst(admit(best, new, limit) or best, limit)
        dropped += surplus
    return best, dropped


@given(VALUES, st.integers(1, 4), st.sampled_from(["greater", "less"]))
def test_the_kept_values_are_the_best_finite_ones(values, limit, rule):
    best, dropped = admit_all(values, limit, rule)
    kept = [each["value"] for each in best["checkpoints"]]
    finite = [value for value in values if math.isfinite(value)]
    assert sorted(kept) == sorted(sorted(finite, reverse=rule == "greater")[:limit])
    assert not set(dropped) & {each["file"] for each in best["checkpoints"]}


def test_a_tie_with_the_worst_replaces_nothing():
    best, dropped = admit_all([0.5, 0.75, 0.5], 2, "greater")
    assert [each["file"] for each in best["checkpoints"]] == ["0", "1"]
    assert dropped == []


def test_the_oldest_of_equally_bad_ones_is_replaced():
    best, dropped = admit_all([0.5, 0.5, 0.75], 2, "greater")
    assert [each["file"] for each in best["checkpoints"]] == ["1", "2"]
    assert dropped == ["0"]


def test_a_repeated_validation_replaces_its_own_entry():
    best = BestFiles(rule="less", checkpoints=[])
    new = BestFile(file="a", value=1.0, epoch=1, iter=1)
    once = admit(best, new, 1)
    assert once is not None
    assert admit(once, new, 1) == once


def test_each_metric_has_its_own_limit():
    accuracy, _ = admit_all([0.5, 0.75], 2, "greater")
    loss, _ = admit_all([0.5, 0.25], 2, "less")
    best = {"accuracy": accuracy, "loss": loss}
    assert names_of(best) == ["0", "1", "0", "1"]
    kept, dropped = drop_worst_of_each(best, 1)
    assert names_of(kept) == ["1", "1"]
    assert dropped == ["0", "0"]


def test_a_name_holds_metric_score_and_iteration():
    assert name_best("val/accuracy", 0.98123, 350) == "best_val_accuracy_0.9812_iter_350.pth"


def test_the_list_has_the_best_first(tmp_path):
    best, _ = admit_all([0.5, 0.25, 0.75], 3, "less")
    write_list(tmp_path, {"loss": best})
    listed = json.loads((tmp_path / "best.json").read_text())["metrics"]["loss"]
    assert listed["rule"] == "less"
    assert [each["value"] for each in listed["checkpoints"]] == [0.25, 0.5, 0.75]


def test_a_list_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    best, _ = admit_all([0.5], 1, "less")
    write_list(tmp_path / "missing", {"loss": best})
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_the_best_of_a_metric_is_found_among_those_with_a_score():
    ranked = name_best("val/accuracy", 1e-05, 350)
    names = ["last.pth", ranked, "best_val_accuracy.pth", "epoch_3.pth", "best_loss.pth"]
    assert find_best_names(names) == ["best_val_accuracy.pth", "best_loss.pth"]
