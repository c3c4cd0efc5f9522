"""Secrets are masked in everything that is written or shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"


def mask_secrets(value: Any) -> Any:
    """A copy in which passwords, tokens, keys and the credentials in URLs are `***`."""
    if isinstance(value, Mapping):
        return {key: _hidden(item) if is_secret(key) else mask_secrets(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_secrets(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_text(text: str) -> str:
    """A text without the credentials of the URLs in it."""
    text = re.sub(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#'\"]*@", rf"\1{MASK}@", text)
    return re.sub(r"([?&])([\w.-]+)=[^&#\s'\"]+", lambda m: f"{m[1]}{m[2]}={MASK}" if is_secret(m[2]) else m[0], text)


_SECRET = {
    *("password", "passwd", "passphrase", "pwd", "secret", "secrets", "authorization", "credential", "credentials", "apikey", "authtoken"),
}
_KINDS_OF_KEY = {
    *("access", "account", "api", "app", "auth", "aws", "azure", "client", "comet", "deploy", "encryption", "gcp", "hf", "host", "license"),
    *("master", "openai", "private", "s3", "secret", "service", "session", "shared", "signing", "ssh", "storage", "user", "wandb"),
}
_WORDS_BEFORE_TOKEN = {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "special", "start", "end", "image", "per"}  # of language models


def is_secret(key: object) -> bool:
    """Whether a key is called like something that nobody else should see."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", str(key))]
    if _SECRET & set(words) or words in (["key"], ["auth"]):
        return True
    pairs = list(zip(["", *words], words, strict=False))
    if any(before in _KINDS_OF_KEY and word in ("key", "keys", "tokens") for before, word in pairs):
        return True
    return bool(pairs) and pairs[-1][1] == "token" and pairs[-1][0] not in _WORDS_BEFORE_TOKEN


def _hidden(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) or value == "" else MASK
