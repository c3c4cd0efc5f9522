"""Random changes of files, such as damage or an attacker would make."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from typing import Any

INTERESTING = (
    b"\x00",
    b"\xff" * 8,
    b"\x7f\xff\xff\xff",
    b"../",
    b"\x1b[",
    b"{}",
    b"[[[[",
    b"nan",
    b"1e999",
    "\u2028".encode(),
)
NUMBERS = (-1, 2**63, 10**30, 1e308)
TEXTS = ("", "../x", "\x1b[31m", "a" * 300)
VALUES = (None, True, *NUMBERS, *TEXTS, [], {}, [[]], {"": None})
MAX_EDITS = 8


def mutate_bytes(data: bytes, choose: random.Random) -> bytes:
    """Flip, replace, insert, repeat or cut bytes, up to eight times."""
    content = bytearray(data)
    for _ in range(choose.randint(1, MAX_EDITS)):
        position = choose.randrange(len(content) + 1)
        kind = choose.randrange(6)
        if kind == 0 and position < len(content):
            content[position] ^= 1 << choose.randrange(8)
        elif kind == 1:
            content[position : position + 1] = bytes([choose.randrange(256)])
        elif kind == 2:
            content[position:position] = choose.choice(INTERESTING)
        elif kind == 3:
            length = choose.randrange(1, 64)
            content[position:position] = content[position : position + length]
        elif kind == 4:
            del content[position : position + choose.randrange(1, 64)]
        elif choose.random() < 0.1:
            del content[position:]
    return bytes(content)


def mutate_pickle_in_zip(data: bytes, choose: random.Random) -> bytes:
    """Change the pickle inside a file of torch.save; the archive stays intact."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("data.pkl"):
                content = mutate_bytes(content, choose)
            archive.writestr(name, content)
    return target.getvalue()


def mutate_json(value: Any, choose: random.Random) -> Any:
    """Replace one value of a JSON document, somewhere in it."""
    if isinstance(value, dict) and value and choose.random() < 0.9:
        key = choose.choice(sorted(value))
        return {**value, key: mutate_json(value[key], choose)}
    if isinstance(value, list) and value and choose.random() < 0.8:
        index = choose.randrange(len(value))
        return [*value[:index], mutate_json(value[index], choose), *value[index + 1 :]]
    return choose.choice(VALUES)


def mutate_manifest(data: bytes, choose: random.Random) -> bytes:
    """Change a value of a manifest and correct its checksum."""
    body = json.loads(data)
    del body["sha256"]
    body = mutate_json(body, choose)
    if not isinstance(body, dict):
        return json.dumps(body).encode()
    checksum = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps({"sha256": checksum, **body}).encode()
