"""Look up known vulnerabilities of the pinned packages with pip-audit.

    python scripts/audit.py PIP_AUDIT [--allow-unreachable]

Exit codes: 0 no known vulnerabilities, 1 vulnerabilities found, 2 not audited, because the service
or most of its answers are missing. pip-audit itself reports "no known vulnerabilities" then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROBE = "https://pypi.org/pypi/pip/24.0/json"  # an answer of the form that pip-audit reads
PROBE_TIMEOUT_S = 10
MAX_SKIPPED_SHARE = 0.1

CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pip_audit", help="the command pip-audit")
    parser.add_argument(
        "--allow-unreachable",
        action="store_true",
        help="exit with 0 if the packages cannot be audited",
    )
    args = parser.parse_args()
    problem = probe(PROBE)
    if problem:
        print(f"not audited: {PROBE} gives no answer ({problem})")
        code = NOT_AUDITED
    else:
        code = judge(run_pip_audit(args.pip_audit))
    if code == NOT_AUDITED and args.allow_unreachable:
        print("not audited: run `make audit` where pypi.org can be reached")
        return CLEAN
    return code


def probe(url: str) -> str:
    """Return why the service of vulnerabilities gives no answer; "" if it gives one."""
    try:
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S) as answer:
            found = json.load(answer)
    except (OSError, ValueError) as error:
        return str(error)
    if not isinstance(found, Mapping) or "vulnerabilities" not in found:
        return "an answer without vulnerabilities"
    return ""


def run_pip_audit(command: str) -> dict[str, Any]:
    """Return the result of pip-audit for the pinned packages; empty if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "audit.json")
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        requirements = ["--requirement", str(ROOT / "constraints.txt")]
        try:
            subprocess.run([command, *requirements, *options, "--output", str(output)], check=False)
        except OSError as error:
            print(f"cannot start {command}: {error.strerror}")
        if not output.exists():
            return {}
        result: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return result


def judge(result: Mapping[str, Any]) -> int:
    """Print vulnerabilities and skipped packages; return the exit code."""
    packages = result.get("dependencies", [])
    skipped = [package for package in packages if "skip_reason" in package]
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        for found in package["vulns"]:
            fixed = ", ".join(found.get("fix_versions", [])) or "no version"
            print(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    print(f"{len(packages)} packages, {len(skipped)} not audited, {len(vulnerable)} vulnerable")
    if vulnerable:
        return VULNERABLE
    if not packages or len(skipped) > MAX_SKIPPED_SHARE * len(packages):
        return NOT_AUDITED
    return CLEAN


if __name__ == "__main__":
    sys.exit(main())
