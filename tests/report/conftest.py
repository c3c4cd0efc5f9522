"""A real browser, where one is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, driven by Playwright; skipped, with the reason, where either is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("HOOKLINE_CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """A function that opens an address and gives the page; what its console complains of is in `page.complaints`."""
    contexts = []

    def open_page(address: str, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1200, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on(
            "request", lambda request: page.complaints.append(f"network: {request.url}") if _is_elsewhere(request.url, address) else None
        )
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_page
    for context in contexts:
        context.close()


def _is_elsewhere(url: str, address: str) -> bool:
    return not url.startswith(("data:", "file:", address.split("?")[0]))
