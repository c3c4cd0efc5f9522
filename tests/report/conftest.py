"""A real browser, if one is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.waiting import LIMIT_S

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
COMMANDS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, driven by Playwright; tests are skipped if either is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("HOOKLINE_CHROMIUM")
    for command in COMMANDS:
        path = path or shutil.which(command)
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """A function that opens an address and returns the page.

    `page.complaints` lists errors of its console and requests to other addresses.
    """
    contexts = []

    def open_page(address: str, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1200, "height": 900}, **options)
        context.set_default_timeout(1000 * LIMIT_S)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []

        def note_message(message: Any) -> None:
            if message.type in ("error", "warning"):
                page.complaints.append(message.text)

        def note_request(request: Any) -> None:
            if not request.url.startswith(("data:", "file:", address.split("?")[0])):
                page.complaints.append(f"network: {request.url}")

        page.on("console", note_message)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", note_request)
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_page
    for context in contexts:
        context.close()
