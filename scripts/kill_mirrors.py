"""Kill training runs with a mirror in object storage, and continue each on an empty disk.

    python scripts/kill_mirrors.py [--kills 100] [--per-chain 8] [--megabytes 4] [--seed 0]

An S3 server (moto) runs on loopback. A chain is a run that is killed with SIGKILL several times,
about every second time while it uploads a checkpoint. Each process starts with an empty work
directory. Exit code 1 if any chain failed to resume or ended differently from an uninterrupted run.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import s3fs  # noqa: F401  # Imported once, before the processes are forked.

from hookline import Runner
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.hooks import CheckpointHook
from hookline.remote import RemoteDirectory
from hookline.verify import compare_runs
from scripts.kill_chains import CASES, OUTPUT, straight_run
from tests.object_storage import BUCKET, Proxy, environment, s3_server

LONGEST_S = 6.0  # until a kill by the clock
UPLOAD_LIMIT_S = 120.0  # until a kill if there was no upload
NAMES = ("dropout, saved by iteration", "everything, no workers", "two workers", "saved by epoch")


class Killer:
    """Kills one process: at an upload of a checkpoint, or after some time."""

    def __init__(self, proxy: Proxy) -> None:
        self.in_upload = False
        self._uploads = 0
        self._process: int | None = None
        self._lock = threading.Lock()
        proxy.rule = self._look

    def aim(self, process: int, uploads: int, seconds: float) -> threading.Timer:
        """Kill a process at its n-th upload of a checkpoint, or after some seconds."""
        with self._lock:
            self.in_upload = False
            self._uploads = uploads
            self._process = process
        timer = threading.Timer(seconds, self._kill)
        timer.start()
        return timer

    def disarm(self) -> None:
        with self._lock:
            self._process = None

    def _look(self, method: str, path: str) -> str | None:
        is_upload = method == "PUT" and ".pth" in path
        if not is_upload or self._process is None or not self._uploads:
            return None
        self._uploads -= 1
        if self._uploads:
            return None
        self.in_upload = True
        self._kill()
        return "drop"

    def _kill(self) -> None:
        with self._lock:
            if self._process is not None:
                os.kill(self._process, signal.SIGKILL)
                self._process = None


def main() -> int:
    args = parse_arguments()
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    kills = in_uploads = chains = bad = 0
    with tempfile.TemporaryDirectory(prefix="kill-mirrors-") as path, s3_server() as port:
        proxy = Proxy(port)
        os.environ.update(environment(proxy.url))
        killer = Killer(proxy)
        straight = {}
        while kills < args.kills:
            name = NAMES[chains % len(NAMES)]
            if name not in straight:
                straight[name] = Path(path, f"straight-{len(straight)}")
                straight_run(CASES[name], straight[name], args.megabytes)
            folder = Path(path, f"chain-{chains}")
            result = run_chain(name, folder, killer, args, args.seed + chains)
            problems = result.problems + differences(straight[name], result.last)
            kills += result.kills
            in_uploads += result.in_uploads
            chains += 1
            bad += bool(problems)
            text = "; ".join(problems) or "identical"
            print(f"{name:30} {result.kills} kills, {result.in_uploads} in an upload: {text}")
            sys.stdout.flush()
            if not problems:
                shutil.rmtree(folder)
        proxy.close()
    print(
        f"{kills} kills, {in_uploads} during an upload, each followed by a start on an empty disk, "
        f"in {chains} chains: {chains - bad} ended bit-identical, {bad} not"
    )
    return 1 if bad else 0


class ChainResult:
    """The kills of a chain, its problems, and the directory of its last process."""

    def __init__(self, last: Path) -> None:
        self.kills = 0
        self.in_uploads = 0
        self.problems: list[str] = []
        self.last = last


def run_chain(
    name: str, folder: Path, killer: Killer, args: argparse.Namespace, seed: int
) -> ChainResult:
    """Kill a run and continue it on empty disks until it finishes."""
    choice = random.Random(seed)
    url = f"s3://{BUCKET}/{folder.name}"
    result = ChainResult(folder)
    for number in range(args.per_chain + 1):
        result.last = folder / str(number)
        process = fork(name, result.last, url, args.megabytes)
        timer = None
        if number < args.per_chain:
            uploads = choice.randint(1, 4) if number % 2 else 0
            seconds = UPLOAD_LIMIT_S if uploads else choice.uniform(0.5, LONGEST_S)
            timer = killer.aim(process, uploads, seconds)
        _, status = os.waitpid(process, 0)
        killer.disarm()
        if timer is not None:
            timer.cancel()
        if os.WIFSIGNALED(status):
            result.kills += 1
            result.in_uploads += killer.in_upload
            continue
        if status:
            result.problems.append((result.last / OUTPUT).read_text()[-1500:])
        break
    result.problems += check_mirror(RemoteDirectory(url))
    return result


def fork(name: str, work_dir: Path, url: str, megabytes: float) -> int:
    """Start a run with a mirror in a forked process and return the process id."""
    work_dir.mkdir(parents=True)
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        output = os.open(work_dir / OUTPUT, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        with_mirror(CASES[name](work_dir, megabytes), url).train()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def with_mirror(runner: Runner, url: str) -> Runner:
    for hook in runner.hooks:
        if isinstance(hook, CheckpointHook):
            hook.mirror = url
    return runner


def check_mirror(remote: RemoteDirectory) -> list[str]:
    """Return the problems of a mirror after its run; in a child, because S3 clients do not fork."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        problems = "".join(find_problems(remote))
        os.write(writing, problems.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading) as file:
        text = file.read()
    return [text] if text else []


def find_problems(remote: RemoteDirectory) -> Iterator[str]:
    try:
        manifest = read_manifest(remote)
        if manifest is None:
            yield "no manifest"
        elif manifest.keys() != set(remote.list("files")):
            yield "the contents are not those of the manifest"
        elif remote.abort_uploads("files"):
            yield "a multi-part upload was left"
    except Exception as error:
        yield str(error)


def differences(straight: Path, last: Path) -> list[str]:
    found = []
    for subject, texts in compare_runs(straight, last).items():
        if texts:
            found.append(f"{subject}: {texts[0]}")
    return found


def parse_arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="total number (default: 100)")
    parser.add_argument("--per-chain", type=int, default=8, help="kills in a chain (default: 8)")
    parser.add_argument("--megabytes", type=float, default=4, help="size of a checkpoint, about")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
