"""Run benchmarks one after another, and keep what they give with date, versions, machine and how busy it was.

    python benchmarks/run.py [NAME …]          all of our own without names; `--peers` for those with other frameworks

Each runs in a process of its own and is written to `benchmarks/results/NAME.json`, from which `report.py` makes the page. Each ratio is
told beside the one that was there before, and whether the two have spreads that meet.
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
}
PEERS = {
    "peers_mlp": ["peers.py", "--epochs", "9", "--only", "mlp-minimal", "mlp-typical"],
    "peers_cnn": ["peers.py", "--epochs", "9", "--only", "cnn-minimal", "cnn-typical"],
    "dispatch_peers": ["dispatch.py"],
    "importing_peers": ["importing.py", "--rounds", "3"],
    "foreign": ["foreign.py"],
}
ALL_CORES = ("checkpoint", "pictures")  # the others are to have one thread


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*SUITE, *PEERS, []], help="what to run")
    parser.add_argument("--peers", action="store_true", help="those with other frameworks")
    arguments = parser.parse_args()
    failed = [name for name in arguments.names or (PEERS if arguments.peers else SUITE) if not run(name, {**SUITE, **PEERS}[name])]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def run(name: str, command: list[str]) -> bool:
    """Run one benchmark; its earlier result is replaced only if it comes to its end."""
    print(f"\n== {name} ==", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "result.json"
        before = os.getloadavg()[0]
        script, *options = command
        environment = dict(os.environ) if name in ALL_CORES else {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, str(HERE / script), *options, "--json", str(output)], env=environment, check=False)
        if done.returncode or not output.exists():
            return False
        content = {"about": about(command, before), "results": json.loads(output.read_text())}
    path = RESULTS / f"{name}.json"
    if path.exists():
        print("\n".join(compared(json.loads(path.read_text(encoding="utf-8"))["results"], content["results"])), flush=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return True


def compared(before: Any, now: Any, name: str = "") -> list[str]:
    """A line for each ratio that both results have."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return []
    lines = []
    if all({"ratio", "low", "high"} <= row.keys() for row in (before, now)):
        meet = before["low"] <= now["high"] and now["low"] <= before["high"]
        lines.append(f"{name:64} {before['ratio']:7.3f} → {now['ratio']:7.3f}   {'as before' if meet else 'OTHER THAN BEFORE'}")
    return lines + [line for key in now if key in before for line in compared(before[key], now[key], f"{name} {key}".strip())]


def about(command: list[str], load_before: float) -> dict[str, Any]:
    return {
        "command": " ".join(["python", f"benchmarks/{command[0]}", *command[1:]]),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "versions": {"python": platform.python_version(), "torch": version("torch"), "hookline": hookline_version()},
        "machine": {"system": f"{platform.system()} {platform.machine()}", "processor": processor(), "cores": os.cpu_count()},
        "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],  # processes that wanted a core, before and after
    }


def hookline_version() -> str:
    """The version, and the commit where there is one."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return version("hookline")
    return f"{version('hookline')} ({commit})"


def processor() -> str:
    """The processor's name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor() or "unknown")


if __name__ == "__main__":
    sys.exit(main())
