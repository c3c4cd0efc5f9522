"""Infer from the name of a metric whether higher or lower is better."""

from __future__ import annotations

import re
from typing import Literal

Direction = Literal["greater", "less"]


class DefaultRule(str):
    """A default rule, to distinguish it from the same rule set by the user."""

    __slots__ = ()


DEFAULT_RULE: Direction = DefaultRule("greater")  # type: ignore[assignment]


def given_rule(rule: Direction) -> Direction | None:
    """Return a rule if the user gave it, else None."""
    return None if isinstance(rule, DefaultRule) else rule


# Words in the names of metrics for which higher is better; `top` counts only before a number.
GREATER = frozenset(
    [
        "acc",
        "accuracy",
        "ap",
        "ar",
        "auc",
        "auprc",
        "auroc",
        "bleu",
        "cider",
        "dice",
        "exact match",
        "f1",
        "iou",
        "jaccard",
        "kappa",
        "map",
        "mcc",
        "meteor",
        "miou",
        "mrr",
        "ndcg",
        "precision",
        "psnr",
        "r2",
        "recall",
        "reward",
        "rouge",
        "score",
        "sensitivity",
        "specificity",
        "ssim",
    ]
)

# Words in the names of metrics for which lower is better.
LESS = frozenset(
    [
        "bpb",
        "bpc",
        "bpd",
        "brier",
        "cer",
        "cross entropy",
        "crossentropy",
        "distance",
        "divergence",
        "ece",
        "eer",
        "epe",
        "err",
        "error",
        "errors",
        "fid",
        "kid",
        "loss",
        "losses",
        "lpips",
        "mae",
        "mape",
        "mse",
        "msle",
        "nll",
        "perplexity",
        "ppl",
        "regret",
        "rmse",
        "rmsle",
        "smape",
        "ter",
        "wer",
    ]
)

# Words that may reverse a direction, as in sklearn's neg_mean_squared_error.
NEGATIONS = frozenset(["inv", "inverse", "minus", "neg", "negated", "negative"])


def infer_direction(name: str) -> Direction | None:
    """Return "greater" or "less" if the name of a metric implies a direction, otherwise None.

    Only whole words count: `fid` and `val/fid` are known, `fidelity` is not. Words end at `_`,
    `-`, `/`, spaces, digits and changes of case. If a name has words of both kinds, as in
    `fid_score`, "less" wins. A name with a negation such as `neg_mean_squared_error` is unknown.
    """
    words = split_words(name)
    if NEGATIONS.intersection(words):
        return None
    text = f" {' '.join(words)} "
    if any(f" {word} " in text for word in LESS):
        return "less"
    if any(f" {word} " in text for word in GREATER) or re.search(r" top \d", text):
        return "greater"
    return None


def split_words(name: str) -> list[str]:
    """Return the words of a metric's name in lower case.

    A word with digits is kept as a whole and in parts: `valF1` gives `val`, `f1`, `f` and `1`.
    """
    name = name.replace("IoU", "Iou")  # Its change of case does not end a word.
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    words = []
    for token in re.findall(r"[a-z0-9]+", name.lower()):
        words.append(token)
        parts = re.findall(r"[a-z]+|[0-9]+", token)
        if len(parts) > 1:
            words += parts
    return words
