from __future__ import annotations

import pytest

from hookline.secrets import is_secret, mask_secrets, mask_text

SECRET = (
    "token hf_token HF_TOKEN authToken key api_key apiKey APIKey WANDB_API_KEY secret_key access-key aws_secret_access_key "
    "aws_access_key_id api_keys password db_password passphrase Authorization credentials client_secret secrets auth s3_key "
    "FSSPEC_S3_KEY SharedAccessSignature AZURE_STORAGE_CONNECTION_STRING"
)
HARMLESS = (
    "best_metric_key keys monkey keyboard tokenizer num_tokens max_tokens pad_token eos_token author type key_metric tokens_per_second "
    "public_key secretary 3 signature connection strings"
)


@pytest.mark.parametrize("key", SECRET.split())
def test_these_keys_hold_secrets(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", [*HARMLESS.split(), "", 3])
def test_these_keys_do_not(key: object) -> None:
    assert not is_secret(key)


def test_secrets_are_masked_at_every_level_and_the_rest_is_untouched() -> None:
    config = {
        "seed": 1,
        "hooks": [
            {
                "type": "X",
                "api_key": "abc",
                "headers": {"Authorization": "Bearer abc"},
                "project": "p",
            }
        ],
        "credentials": {"user": "u", "password": "p"},
        "password": 1234,
        "token": None,
        "use_token": True,
        "uri": "https://me:pw@host/path?x=1&token=abc",
    }
    assert mask_secrets(config) == {
        "seed": 1,
        "hooks": [
            {"type": "X", "api_key": "***", "headers": {"Authorization": "***"}, "project": "p"}
        ],
        "credentials": "***",
        "password": "***",
        "token": None,
        "use_token": True,
        "uri": "https://***@host/path?x=1&token=***",
    }
    assert config["password"] == 1234


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://user:pw@host", "https://***@host"),
        ("postgresql+psycopg://u:p@ss@host:5432/db", "postgresql+psycopg://***@host:5432/db"),
        ("see https://ghp_abc@github.com/x for more", "see https://***@github.com/x for more"),
        ("https://host/a@b", "https://host/a@b"),
        ("me@example.org", "me@example.org"),
        ("s3://bucket/key?api_key=abc#x", "s3://bucket/key?api_key=***#x"),
    ],
)
def test_credentials_in_urls_are_masked(text: str, masked: str) -> None:
    assert mask_text(text) == masked


def test_a_secret_of_the_environment_is_masked_as_a_key_too(monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    assert mask_secrets({"a": {"hunter2hunter2": 1}}) == {"a": {"***": 1}}
