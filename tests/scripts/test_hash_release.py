"""The hashes of the release files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import yaml

from scripts.hash_release import hash_files

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"[\w-]+/[\w/.-]+@[0-9a-f]{40}")


def test_every_release_file_has_its_hash(tmp_path: Path) -> None:
    for name in ("b.whl", "a.tar.gz", "notes.txt"):
        (tmp_path / name).write_bytes(name.encode())
    lines = [line.split("  ") for line in hash_files(tmp_path).splitlines()]
    assert lines == [
        [hashlib.sha256(b"a.tar.gz").hexdigest(), "a.tar.gz"],
        [hashlib.sha256(b"b.whl").hexdigest(), "b.whl"],
    ]


def test_workflows_pin_their_actions_to_a_commit() -> None:
    used = []
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            used += [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []
