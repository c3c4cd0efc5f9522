"""Register the built-in writers, without importing the libraries that they use."""

from hookline.events.clearml import ClearMLWriter
from hookline.events.console import ConsoleWriter
from hookline.events.csv import CSVWriter
from hookline.events.dvclive import DVCLiveWriter
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.mlflow import MLflowWriter
from hookline.events.neptune import NeptuneWriter
from hookline.events.swanlab import SwanLabWriter
from hookline.events.tensorboard import TensorBoardWriter
from hookline.events.trackio import TrackioWriter
from hookline.events.wandb import WandbWriter

__all__ = [
    "CSVWriter",
    "ClearMLWriter",
    "ConsoleWriter",
    "DVCLiveWriter",
    "JSONLinesWriter",
    "MLflowWriter",
    "NeptuneWriter",
    "SwanLabWriter",
    "TensorBoardWriter",
    "TrackioWriter",
    "WandbWriter",
]
