from __future__ import annotations

import io
import os
import sys

import pytest

from hookline.streams import UnfailingStream, is_terminal, unfailing_output


class Full(io.StringIO):
    """A stream whose disk is full."""

    def write(self, text):
        raise OSError("no space left on device")

    def flush(self):
        raise OSError("no space left on device")


def test_output_is_dropped_from_the_first_failure_on():
    stream = UnfailingStream(Full())
    assert stream.write("lost") == 4
    stream.flush()
    assert stream.write("lost, too") == 9
    assert not stream.isatty()


def test_the_streams_are_put_back(capsys):
    before = sys.stdout, sys.stderr
    with unfailing_output():
        print("shown")
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "shown\n"


def test_output_reaches_a_good_stream() -> None:
    inner = io.StringIO()
    stream = UnfailingStream(inner)
    assert stream.write("shown") == 5
    stream.flush()
    assert inner.getvalue() == stream.getvalue() == "shown"  # other methods are those of the stream


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_missing_or_closed_stream_drops_its_output(stream: io.StringIO | None) -> None:
    if stream is not None:
        stream.close()
    unfailing = UnfailingStream(stream)
    assert unfailing.write("lost") == 4
    unfailing.flush()
    assert not unfailing.isatty()
    assert not is_terminal(stream)


def test_the_rest_of_a_failed_stream_goes_nowhere(tmp_path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        stream = UnfailingStream(pipe)
        stream.write("lost")
        stream.flush()
        pipe.write("lost as well")
        pipe.flush()  # into the null device


def test_the_streams_are_put_back_after_an_error() -> None:
    def fail() -> None:
        with unfailing_output():
            assert isinstance(sys.stdout, UnfailingStream)
            raise ValueError

    before = sys.stdout, sys.stderr
    with pytest.raises(ValueError):
        fail()
    assert (sys.stdout, sys.stderr) == before
