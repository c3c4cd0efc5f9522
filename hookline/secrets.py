"""Mask secrets in everything that is written or shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

# Words that make a key secret wherever they stand in it.
SECRET_WORDS = frozenset(
    [
        "apikey",
        "authorization",
        "authtoken",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
    ]
)

# Words before `key`, `keys` or `tokens` that make a key secret: `api_key`, but not `sort_key`.
OWNERS_OF_KEYS = frozenset(
    [
        "access",
        "account",
        "api",
        "app",
        "auth",
        "aws",
        "azure",
        "client",
        "comet",
        "deploy",
        "encryption",
        "gcp",
        "hf",
        "host",
        "license",
        "master",
        "openai",
        "private",
        "s3",
        "secret",
        "service",
        "session",
        "shared",
        "signing",
        "ssh",
        "storage",
        "user",
        "wandb",
    ]
)

# Words before `token` in the configs of language models, where a token is not a secret.
KINDS_OF_TOKENS = frozenset(
    [
        "bos",
        "cls",
        "end",
        "eos",
        "image",
        "mask",
        "pad",
        "per",
        "sep",
        "special",
        "start",
        "unk",
    ]
)

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
URL_CREDENTIALS = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#'\"]*@")
QUERY_PARAMETER = re.compile(r"([?&])([\w.-]+)=[^&#\s'\"]+")


def mask_secrets(value: Any) -> Any:
    """Return a copy with `***` in place of passwords, tokens, keys and credentials in URLs."""
    if isinstance(value, Mapping):
        masked = {}
        for key, item in value.items():
            masked[key] = _mask_value(item) if is_secret(key) else mask_secrets(item)
        return masked
    if isinstance(value, (list, tuple)):
        return [mask_secrets(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_text(text: str) -> str:
    """Return a text with `***` in place of the credentials in its URLs."""
    text = URL_CREDENTIALS.sub(rf"\1{MASK}@", text)
    return QUERY_PARAMETER.sub(_mask_parameter, text)


def is_secret(key: object) -> bool:
    """Return whether a key names a secret: `api_key`, `hfToken`, `password`."""
    words = [word.lower() for word in WORD.findall(str(key))]
    if not SECRET_WORDS.isdisjoint(words) or words in (["key"], ["auth"]):
        return True
    for before, word in zip(["", *words], words, strict=False):
        if before in OWNERS_OF_KEYS and word in ("key", "keys", "tokens"):
            return True
    if not words or words[-1] != "token":
        return False
    return len(words) == 1 or words[-2] not in KINDS_OF_TOKENS


def _mask_value(value: Any) -> Any:
    """Mask a secret. None, booleans and empty text reveal nothing and stay."""
    if value is None or isinstance(value, bool) or value == "":
        return value
    return MASK


def _mask_parameter(match: re.Match[str]) -> str:
    separator, name = match.groups()
    return f"{separator}{name}={MASK}" if is_secret(name) else match[0]
