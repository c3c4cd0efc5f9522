"""Mask secrets in everything that is written or shown."""

from __future__ import annotations

import functools
import os
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
        "webhook",
    ]
)

# Words before `key`, `keys`, `tokens` or `signature` that make a key secret: `api_key`, but not
# `sort_key`.
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

# Parameters of URLs that give access to a file without a login, such as those of Azure and S3.
SIGNATURES = frozenset(["sig", "signature", "x-amz-signature", "x-goog-signature"])

WORD = re.compile(r"s3|S3|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Every repetition below has a limit: the text of an error may be long and hostile.
SCHEME = r"(\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://)"
URL_CREDENTIALS = re.compile(SCHEME + r"[^/\s?#'\"]{0,1000}@")
# A password with an unencoded slash; a number after the colon is a port.
URL_PASSWORD = re.compile(SCHEME + r"[^/\s:@'\"]{0,200}:(?!\d{0,5}[/?#])[^\s'\"]{1,200}@")
QUERY_PARAMETER = re.compile(r"([?&])([\w.-]{1,100})=[^&#\s'\"]+")
AUTHORIZATION = re.compile(
    r"""(?i)(\bauthorization["']?\s?[:=]\s?["']?)(?:(?:bearer|basic|token)\s)?[^\s"',;]+"""
)
BEARER = re.compile(r"(?i)\b(bearer\s)[\w.~+/=-]{16,}")
ASSIGNED_NAME = re.compile(r"""\b([A-Za-z][\w-]{1,60})["']?\s?([:=])\s?["']?""")
ASSIGNED_VALUE = re.compile(r"""[^\s"'&,;(){}\[\]]+""")
HARMLESS_VALUES = ("null", "none", "true", "false", MASK)
# Shorter values of environment variables are not masked: as a whole, and inside a text.
MIN_SECRET_CHARACTERS = 4
MIN_INNER_SECRET_CHARACTERS = 6


def mask_secrets(value: Any) -> Any:
    """Return a copy with `***` in place of passwords, tokens, keys and credentials in URLs."""
    if isinstance(value, Mapping):
        masked = {}
        for key, item in value.items():
            shown = mask_secrets(key) if isinstance(key, str) else key
            masked[shown] = _mask_value(item) if is_secret(key) else mask_secrets(item)
        return masked
    if isinstance(value, (list, tuple)):
        return [mask_secrets(item) for item in value]
    if isinstance(value, str):
        return MASK if value in environment_secrets(MIN_SECRET_CHARACTERS) else mask_text(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and str(value) in environment_secrets(MIN_INNER_SECRET_CHARACTERS):
        return MASK
    return value


def mask_text(text: str) -> str:
    """Return a text with `***` in place of secrets.

    These are credentials in URLs, headers and assignments such as `api_key=…`, and the values of
    environment variables with secret names.
    """
    for value in environment_secrets(MIN_INNER_SECRET_CHARACTERS):
        text = text.replace(value, MASK)
    if "://" in text:
        text = URL_CREDENTIALS.sub(rf"\1{MASK}@", text)
        text = URL_PASSWORD.sub(rf"\1{MASK}@", text)
        text = QUERY_PARAMETER.sub(_mask_parameter, text)
    lower = text.lower()  # Most lines have neither word, and searching for one is fast.
    if "authorization" in lower:
        text = AUTHORIZATION.sub(rf"\1{MASK}", text)
    if "bearer" in lower:
        text = BEARER.sub(rf"\1{MASK}", text)
    return _mask_assignments(text)


def environment_secrets(min_length: int) -> list[str]:
    """Return the values of environment variables with secret names, the longest first."""
    values = {os.environ.get(name, "") for name in _secret_variables(tuple(os.environb))}
    return sorted((value for value in values if len(value) >= min_length), key=len, reverse=True)


def is_secret(key: object) -> bool:
    """Return whether a key names a secret: `api_key`, `hfToken`, `password`."""
    return _is_secret_name(str(key))


@functools.lru_cache(maxsize=8)
def _secret_variables(names: tuple[bytes, ...]) -> tuple[str, ...]:
    """Return the secret ones among the names of environment variables, which rarely change."""
    decoded = map(os.fsdecode, names)
    return tuple(name for name in decoded if name != "PWD" and _is_secret_name(name))


@functools.lru_cache(maxsize=4096)
def _is_secret_name(key: str) -> bool:
    words = [word.lower() for word in WORD.findall(key)]
    if not SECRET_WORDS.isdisjoint(words) or words in (["key"], ["auth"]):
        return True
    for before, word in zip(["", *words], words, strict=False):
        if before in OWNERS_OF_KEYS and word in ("key", "keys", "tokens", "signature"):
            return True
        if before == "connection" and word == "string":
            return True
    if not words or words[-1] != "token":
        return False
    return len(words) == 1 or words[-2] not in KINDS_OF_TOKENS


def _mask_value(value: Any) -> Any:
    """Mask a secret. None, booleans and empty text reveal nothing and stay."""
    if value is None or isinstance(value, bool) or value == "":
        return value
    return MASK


def _mask_assignments(text: str) -> str:
    """Mask the values in `hf_token=x` and `"password": "x"`."""
    parts = []
    position = 0
    for name in ASSIGNED_NAME.finditer(text):
        if name.start() < position or not _is_assigned_secret(name[1], name[2]):
            continue
        value = ASSIGNED_VALUE.match(text, name.end())
        if value is not None and not value[0].lower().startswith(HARMLESS_VALUES):
            parts.append(text[position : name.end()])
            position = value.end()
    return MASK.join([*parts, text[position:]])


def _is_assigned_secret(name: str, sign: str) -> bool:
    """Return whether an assigned name is secret; `key=len` and `token: word` are common code."""
    word = name.lower()
    if word in ("key", "auth") or (word == "token" and sign == ":"):
        return False
    return is_secret(name)


def _mask_parameter(match: re.Match[str]) -> str:
    separator, name = match.groups()
    if is_secret(name) or name.lower() in SIGNATURES:
        return f"{separator}{name}={MASK}"
    return match[0]
