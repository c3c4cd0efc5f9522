from __future__ import annotations

import pytest

from hookline.metrics.direction import GREATER, LESS, NEGATIONS, infer_direction, split_words


@pytest.mark.parametrize(
    "name",
    [
        "accuracy",
        "val_acc",
        "val/accuracy",
        "balanced-accuracy",
        "Accuracy",
        "MulticlassAccuracy",
        "top1",
        "top_5",
        "acc_top5",
        "mAP",
        "map50",
        "bbox_mAP_50",
        "ap50",
        "AP",
        "f1",
        "F1Score",
        "MulticlassF1Score",
        "macro f1",
        "r2",
        "AUROC",
        "BinaryAUROC",
        "mIoU",
        "MeanIoU",
        "dice",
        "precision@5",
        "psnr",
        "episode_reward",
        "clip_score",
    ],
)
def test_more_is_better_for_scores(name):
    assert infer_direction(name) == "greater"


@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "val_loss",
        "clean/loss",
        "loss_cls",
        "MSELoss",
        "NLLLoss",
        "error_rate",
        "err",
        "top1_err",
        "cer",
        "wer",
        "fid",
        "FID",
        "val/fid",
        "fid50k",
        "rmse",
        "RMSE",
        "mean_squared_error",
        "perplexity",
        "val_ppl",
        "cross_entropy",
        "hamming_distance",
        "brier_score",
        "fid_score",
    ],
)
def test_less_is_better_for_losses_and_errors(name):
    assert infer_direction(name) == "less"


@pytest.mark.parametrize(
    "name",
    [
        "fidelity",
        "certainty",
        "accident_rate",
        "app_time",
        "mapping",
        "topology",
        "desktop_usage",
        "errand",
        "glossary",
        "cereal",
        "lower",
        "apples",
        "scoreboard",
        "top",
        "spread",
        "entropy",
        "temperature",
        "",
        "_",
        "42",
    ],
)
def test_a_word_that_only_begins_like_a_metric_has_no_direction(name):
    assert infer_direction(name) is None


@pytest.mark.parametrize("name", ["neg_mean_squared_error", "negative_loss", "inverse accuracy"])
def test_a_negated_name_has_no_direction(name):
    assert infer_direction(name) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("val_loss", ["val", "loss"]),
        ("val/top-5 acc", ["val", "top", "5", "acc"]),
        ("valF1", ["val", "f1", "f", "1"]),
        ("AUROCScore", ["auroc", "score"]),
        ("mIoU", ["m", "iou"]),
    ],
)
def test_a_name_is_split_at_separators_digits_and_changes_of_case(name, words):
    assert split_words(name) == words


def test_no_word_has_two_meanings():
    assert not GREATER & LESS
    assert not (GREATER | LESS) & NEGATIONS
