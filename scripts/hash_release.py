"""Write the SHA-256 hashes of the release files to SHA256SUMS, in the form of `sha256sum`.

    python scripts/hash_release.py [DIRECTORY]

`sha256sum --check SHA256SUMS` in the directory (dist by default) verifies them.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

SUMS = "SHA256SUMS"


def hash_files(directory: Path) -> str:
    """Return a line with hash and name for each release file, sorted by name."""
    files = sorted([*directory.glob("*.whl"), *directory.glob("*.tar.gz")])
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    return "".join(lines)


def main() -> None:
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    text = hash_files(directory)
    (directory / SUMS).write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
