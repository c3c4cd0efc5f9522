"""Streams and loaders of other libraries continue exactly, or a user knows before training."""

from __future__ import annotations

import io
import tarfile

import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from hookline.data.position import find_position
from tests.compat_foreign import composer_stubs
from tests.data.loader_table import FOREIGN
from tests.data.loaders import Noisy, Numbers, NumbersWithState, interrupted, seeded, straight

datasets = pytest.importorskip("datasets")
webdataset = pytest.importorskip("webdataset")
litdata = pytest.importorskip("litdata")
pytest.importorskip("transformers")  # before the stand-ins: it looks for torchvision, too
with composer_stubs.installed():
    streaming = pytest.importorskip("streaming", exc_type=ImportError)

LENGTH = 26
CUTS = [[1], [5], [7], [2, 4]]


class WithoutNoise(NumbersWithState):
    """A stream that draws no random numbers."""

    def __iter__(self):
        for number, _ in super().__iter__():
            yield number, 0.0


def _rows():
    for number in range(LENGTH):
        yield {"number": number}


def _collate(rows):
    return torch.tensor([int(row["number"]) for row in rows]), 0.0


def _stream(shuffle=False):
    stream = datasets.IterableDataset.from_generator(_rows)
    return stream.shuffle(seed=3, buffer_size=8) if shuffle else stream


def _table():
    return datasets.Dataset.from_dict({"number": list(range(LENGTH))})


STREAM = "Hugging Face `datasets`, stream, without workers"
NO_POSITION = "Hugging Face `datasets`, shuffled stream or with workers"
STATEFUL_MAP = "torchdata `StatefulDataLoader`, map-style"
STATEFUL_STREAM = "torchdata `StatefulDataLoader`, stream, without workers"
STATEFUL_WORKERS = "torchdata `StatefulDataLoader`, stream, with workers"

# Each with its row in the table of docs/resume.md; None for a loader that has another row there.
LOADERS = {
    "datasets, stream": (lambda: DataLoader(_stream(), 4, collate_fn=_collate), STREAM),
    "datasets, shuffled": (lambda: DataLoader(_stream(True), 4, collate_fn=_collate), NO_POSITION),
    "datasets, worker": (
        lambda: DataLoader(_stream(), 4, collate_fn=_collate, num_workers=1),
        NO_POSITION,
    ),
    "datasets, table": (lambda: DataLoader(_table(), 4, shuffle=True, collate_fn=_collate), None),
    "torchdata, map": (lambda: StatefulDataLoader(Noisy(), 4, shuffle=True), STATEFUL_MAP),
    "torchdata, generator": (
        lambda: StatefulDataLoader(Noisy(), 4, shuffle=True, generator=seeded()),
        STATEFUL_MAP,
    ),
    "torchdata, map, workers": (
        lambda: StatefulDataLoader(Noisy(), 4, shuffle=True, num_workers=2),
        STATEFUL_MAP,
    ),
    "torchdata, stream": (lambda: StatefulDataLoader(NumbersWithState(), 4), STATEFUL_STREAM),
    "torchdata, stream, workers": (
        lambda: StatefulDataLoader(WithoutNoise(), 4, num_workers=2),
        STATEFUL_WORKERS,
    ),
    "torchdata, no state": (lambda: StatefulDataLoader(Numbers(), 4), None),
    "torchdata of datasets": (
        lambda: StatefulDataLoader(_stream(), 4, collate_fn=_collate),
        STATEFUL_STREAM,
    ),
}


def check_documented(loader, title):
    """Check that the position in a loader is the one of its row in the table."""
    position = find_position(loader)
    assert (type(position), position.announcement is not None) == FOREIGN[title]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_of_another_library_continues_exactly(name):
    make, title = LOADERS[name]
    expected = straight(make)
    for cuts in CUTS:
        assert interrupted(make, cuts) == expected
    if title is not None:
        check_documented(make(), title)


def test_a_stream_of_webdataset_continues_exactly(tmp_path):
    path = tmp_path / "samples.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(LENGTH):
            content = str(number).encode()
            entry = tarfile.TarInfo(f"{number:04d}.txt")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

    def collate(rows):
        return torch.tensor([int(row["txt"]) for row in rows]), 0.0

    def make():
        stream = webdataset.WebDataset(str(path), shardshuffle=False)
        return DataLoader(stream, 4, collate_fn=collate)

    expected = straight(make)
    samples = sorted(number for row in expected[:7] for number in row[:-4])
    assert samples == list(range(LENGTH))
    for cuts in CUTS:
        assert interrupted(make, cuts) == expected
    check_documented(make(), "webdataset")


def test_a_stream_of_litdata_continues_exactly(tmp_path):
    folder = str(tmp_path / "optimized")
    litdata.optimize(_sample, list(range(LENGTH)), folder, num_workers=1, chunk_size=10)

    def make():
        stream = litdata.StreamingDataset(folder, shuffle=True, seed=3)
        return litdata.StreamingDataLoader(stream, batch_size=4, collate_fn=_collate)

    expected = straight(make)
    for cuts in CUTS:
        assert interrupted(make, cuts) == expected
    check_documented(make(), "litdata `StreamingDataLoader`")


def _sample(number):
    return {"number": number}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_stream_of_mosaicml_continues_exactly(tmp_path, num_workers):
    folder = str(tmp_path / "shards")
    with streaming.MDSWriter(out=folder, columns={"number": "int"}, size_limit=200) as writer:
        for number in range(LENGTH):
            writer.write({"number": number})

    def make():
        streaming.base.util.clean_stale_shared_memory()  # as in another process
        stream = streaming.StreamingDataset(
            local=folder, shuffle=True, shuffle_seed=3, batch_size=4
        )
        return streaming.StreamingDataLoader(
            stream,
            batch_size=4,
            collate_fn=_collate,
            num_workers=num_workers,
            multiprocessing_context="fork" if num_workers else None,  # litdata sets another one
        )

    expected = straight(make)
    assert expected[0][:4] != expected[7][:4]  # each epoch has its own order
    for cuts in CUTS:
        assert interrupted(make, cuts) == expected
    check_documented(make(), "mosaicml-streaming `StreamingDataLoader`")
