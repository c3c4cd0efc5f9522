"""Run benchmarks, and store their results with the date, versions, machine and load.

    python benchmarks/run.py                 all of our own
    python benchmarks/run.py --peers         those with other frameworks
    python benchmarks/run.py --compat        those in the environment of `make test-compat`
    python benchmarks/run.py NAME …          some of them

Each benchmark runs in a new process. Its results are in `benchmarks/results/NAME.json`, from which
`report.py` makes the page. Each new ratio is printed beside the previous one, with a note if their
spreads do not overlap.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SUITE = {
    "overhead": ["overhead.py", "--blocks", "600"],
    "typical": ["peers.py", "--contenders", "Hookline"],
    "dispatch": ["dispatch.py"],
    "checkpoint": ["checkpoint.py"],
    "ema": ["ema.py"],
    "importing": ["importing.py", "--rounds", "5"],
    "growth": ["growth.py", "--turns", "40", "--long"],
    "pictures": ["pictures.py", "--rounds", "21"],
    "ddp": ["ddp.py", "--blocks", "200"],
    "order": ["order.py", "--turns", "5"],
    "loading": ["loading.py", "--rounds", "9"],
    "optimization": ["optimization.py"],
    "ports": ["ports.py"],
}
PEERS = {
    "peers_mlp": ["peers.py", "--epochs", "9", "--only", "mlp-minimal", "mlp-typical"],
    "peers_cnn": ["peers.py", "--epochs", "9", "--only", "cnn-minimal", "cnn-typical"],
    "dispatch_peers": ["dispatch.py"],
    "importing_peers": ["importing.py", "--rounds", "3"],
    "foreign": ["foreign.py"],
}
COMPAT = {"remote": ["remote.py"], "finetune": ["finetune.py"]}
BENCHMARKS = {**SUITE, **PEERS, **COMPAT}
ALL_CORES = ("checkpoint", "pictures", "remote")  # the other benchmarks use one thread


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="benchmarks to run")
    groups = parser.add_mutually_exclusive_group()
    for option, group in (("--peers", PEERS), ("--compat", COMPAT)):
        groups.add_argument(option, action="store_const", dest="group", const=group, default=SUITE)
    arguments = parser.parse_args()
    names = arguments.names or list(arguments.group)
    failed = [name for name in names if not run(name, BENCHMARKS[name])]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def run(name: str, command: list[str]) -> bool:
    """Run one benchmark and return whether it succeeded; only then replace its previous result."""
    print(f"\n== {name} ==", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "result.json"
        before = os.getloadavg()[0]
        script, *options = command
        environment = dict(os.environ)
        if name not in ALL_CORES:
            environment["OMP_NUM_THREADS"] = "1"
        done = subprocess.run(
            [sys.executable, str(HERE / script), *options, "--json", str(output)],
            env=environment,
            check=False,
        )
        if done.returncode or not output.exists():
            return False
        content = {"about": about(command, before), "results": json.loads(output.read_text())}
    path = RESULTS / f"{name}.json"
    if path.exists():
        previous = json.loads(path.read_text(encoding="utf-8"))["results"]
        print("\n".join(compare(previous, content["results"])), flush=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return True


def compare(before: Any, now: Any, name: str = "") -> list[str]:
    """Return a line for each ratio that both results have."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return []
    lines = []
    if all({"ratio", "low", "high"} <= row.keys() for row in (before, now)):
        overlap = before["low"] <= now["high"] and now["low"] <= before["high"]
        note = "" if overlap else "   CHANGED"
        lines.append(f"{name:64} {before['ratio']:7.3f} → {now['ratio']:7.3f}{note}")
    for key in now:
        if key in before:
            lines += compare(before[key], now[key], f"{name} {key}".strip())
    return lines


def commands() -> dict[str, str]:
    """Return the command line of each benchmark."""
    return {name: command_line(command) for name, command in BENCHMARKS.items()}


def command_line(command: list[str]) -> str:
    return " ".join(["python", f"benchmarks/{command[0]}", *command[1:]])


def about(command: list[str], load_before: float) -> dict[str, Any]:
    """Return the conditions of a measurement."""
    return {
        "command": command_line(command),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "hookline": hookline_version(),
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor(),
            "cores": os.cpu_count(),
        },
        # The number of processes that wanted a core, before and after.
        "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
    }


def hookline_version() -> str:
    """Return the version, and the commit if there is one."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return version("hookline")
    return f"{version('hookline')} ({commit})"


def processor() -> str:
    """Return the processor's name, if the system has it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
