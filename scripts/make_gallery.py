"""Train the examples and make docs/images/gallery: a picture and the report page of each.

    python scripts/make_gallery.py [NAME ...]

NAME is an example; all by default. The runs, with their complete report pages, are written to
build/gallery. Needs Chromium and playwright for the pictures of the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "build" / "gallery"
IMAGES = ROOT / "docs" / "images" / "gallery"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Lengths in pixels.
PAGE_WIDTH = 1100
PAGE_HEIGHT = 760
SHOWN_WIDTH = 720
COLORS = 128  # of a picture; fewer make a smaller file


@dataclass(frozen=True)
class Example:
    """An example, the pattern of its pictures, of which the last is shown, and its length.

    Attributes:
        epochs: Epochs to train; None for those of the example. More give better pictures.
    """

    name: str
    pictures: str = ""
    epochs: int | None = None


EXAMPLES = (
    Example("classification"),
    Example("detection", "visualizations/DetVisualizationHook/**/*.png", epochs=20),
    Example("segmentation", "visualizations/SegVisualizationHook/**/*.png", epochs=20),
    Example("text"),
    Example("gan", "records/**/*.png"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [example.name for example in EXAMPLES]
    parser.add_argument("names", nargs="*", metavar="NAME", default=names)
    chosen = parser.parse_args().names
    IMAGES.mkdir(parents=True, exist_ok=True)
    RUNS.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser:
        for example in EXAMPLES:
            if example.name in chosen:
                train(example)
                draw(example, browser)
    size = sum(path.stat().st_size for path in IMAGES.iterdir())
    print(f"{IMAGES.relative_to(ROOT)}: {size / 1000:.0f} kB; reports are in build/gallery/runs")


def train(example: Example) -> None:
    """Run the Hookline half of an example in build/gallery."""
    shutil.rmtree(RUNS / "runs" / example.name, ignore_errors=True)
    names = runpy.run_path(str(ROOT / "examples" / f"{example.name}.py"), run_name="example")
    os.chdir(RUNS)  # The example writes to runs/ in the current directory.
    names["hookline"](example.epochs or names["EPOCHS"])


def draw(example: Example, browser: Any) -> None:
    """Write the picture of an example, if it draws any, and that of its report page."""
    run = RUNS / "runs" / example.name
    if example.pictures:
        last = max(run.glob(example.pictures), key=lambda path: path.name)  # step_000192.png
        write_picture(last, IMAGES / f"{example.name}.png")
    page = browser.new_page(viewport={"width": PAGE_WIDTH, "height": PAGE_HEIGHT})
    page.goto((run / "report.html").as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    # Below the table about the run, which describes the machine.
    top = page.locator("h2").first.bounding_box()["y"]
    clip = {"x": 0, "y": top, "width": PAGE_WIDTH, "height": PAGE_HEIGHT}
    shot = RUNS / f"{example.name}.png"
    page.screenshot(path=shot, full_page=True, clip=clip)
    page.close()
    write_picture(shot, IMAGES / f"{example.name}-report.png")


def write_picture(source: Path, target: Path) -> None:
    """Write a picture with about the width of a page and few colors."""
    image = Image.open(source).convert("RGB")
    factor = SHOWN_WIDTH // image.width
    if factor > 1:
        size = (factor * image.width, factor * image.height)
        image = image.resize(size, Image.Resampling.NEAREST)
    if image.width > SHOWN_WIDTH:
        height = round(image.height * SHOWN_WIDTH / image.width)
        image = image.resize((SHOWN_WIDTH, height), Image.Resampling.LANCZOS)
    image.quantize(COLORS).save(target, optimize=True)


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Start Chromium without a window."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("HOOKLINE_CHROMIUM")
    for command in BROWSERS:
        path = path or shutil.which(command)
    if path is None:
        raise SystemExit("no Chromium is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


if __name__ == "__main__":
    main()
