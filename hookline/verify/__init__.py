"""Check that a run survives kills: compare it bit by bit with the same run left alone."""

from hookline.verify.chain import Chain, ChainResult, Launch, run_chain
from hookline.verify.compare import NOT_COMPARED, compare_checkpoints, compare_runs
from hookline.verify.trace import BatchTraceHook, TrialHook

__all__ = [
    "NOT_COMPARED",
    "BatchTraceHook",
    "Chain",
    "ChainResult",
    "Launch",
    "TrialHook",
    "compare_checkpoints",
    "compare_runs",
    "run_chain",
]
