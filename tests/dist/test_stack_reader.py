"""Stacks of other threads, read while those run."""

from __future__ import annotations

import threading
from pathlib import Path

from hookline.dist.stack_reader import StackReader, parse_stack


def test_the_stack_of_a_waiting_thread_is_read_from_the_innermost_call():
    ready = threading.Event()
    finish = threading.Event()

    def inner() -> None:
        ready.set()
        finish.wait()

    def outer() -> None:
        inner()

    thread = threading.Thread(target=outer)
    thread.start()
    ready.wait()
    try:
        assert thread.ident is not None
        calls = StackReader(thread.ident).read()
    finally:
        finish.set()
        thread.join()
    own = [line for file, line in calls if file == __file__]
    first = inner.__code__.co_firstlineno
    assert Path(calls[0][0]).name == "threading.py" or own[0] in (first + 1, first + 2)
    assert own[-1] == outer.__code__.co_firstlineno + 1


def test_stacks_of_threads_that_run_are_read_again_and_again():
    finish = threading.Event()

    def generate(depth: int):
        if depth:
            yield from generate(depth - 1)
        yield depth

    def work() -> None:
        while not finish.is_set():
            list(generate(30))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert thread.ident is not None
        reader = StackReader(thread.ident)
        stacks = [reader.read() for _ in range(300)]
    finally:
        finish.set()
        thread.join()
    assert all(any(file == __file__ for file, _ in stack) for stack in stacks)


def test_a_thread_that_is_gone_has_no_stack():
    thread = threading.Thread(target=str)
    thread.start()
    thread.join()
    assert thread.ident is not None
    assert parse_stack("Thread 0x0000000000000001 (most recent call first):\n", thread.ident) == []


def test_only_the_calls_of_one_thread_are_returned():
    dump = (
        "Thread 0x00000000000000aa [worker] (most recent call first):\n"
        '  File "/a b/x.py", line 3 in f\n'
        "\n"
        "Current thread 0x00000000000000bb (most recent call first):\n"
        '  File "/y.py", line 7 in g\n'
        '  File "/z.py", line 9 in <module>\n'
    )
    assert parse_stack(dump, 0xAA) == [("/a b/x.py", 3)]
    assert parse_stack(dump, 0xBB) == [("/y.py", 7), ("/z.py", 9)]
