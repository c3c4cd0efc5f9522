"""The page in a browser."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from hookline.cli.main import main
from tests.report.folders import ROW, make_run
from tests.report.runs import crashed_and_resumed, demo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return demo(folder / "demo", "seed=7"), crashed_and_resumed(folder / "crashed")


def pixels(locator) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(locator.screenshot())).convert("RGB")).astype(int)


def near(picture: np.ndarray, color: tuple[int, int, int], reach: int = 60) -> int:
    """Return the number of pixels of about this color."""
    return int((np.abs(picture - np.array(color)).sum(axis=2) < reach).sum())


def section(page, title: str):
    return page.locator("section", has=page.locator("h2", has_text=title))


def hover(page, chart: str, where: float = 0.5):
    over = page.locator(f'[data-chart="{chart}"] .u-over')
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * where, box["y"] + box["height"] / 2)
    return page.locator(f'[data-chart="{chart}"] .u-legend .u-value').all_text_contents()


def test_the_page_draws_curves_and_shows_the_values_under_the_mouse(runs, open_page):
    page = open_page(f"file://{runs[0] / 'report.html'}")
    picture = pixels(page.locator('[data-chart="loss"] canvas'))
    assert near(picture, (0x25, 0x63, 0xC9)) > 100  # train
    assert near(picture, (0xD9, 0x58, 0x0D)) > 50  # validation
    values = hover(page, "loss")
    assert len(values) == 3
    assert 0 < float(values[0]) <= 3  # epochs
    assert all(0 < float(value) < 10 for value in values[1:])
    assert hover(page, "loss", 0.95) != values
    for text in (
        "finished",
        "reached max_epochs=3",
        "torch",
        "CheckpointHook",
        "best_accuracy.pth",
        "Gradient flow",
        "Timeline",
    ):
        assert text in page.locator("body").inner_text(), text
    assert page.complaints == []


def test_smoothing_adds_curves_and_dragging_zooms(runs, open_page):
    page = open_page(f"file://{runs[0] / 'report.html'}")
    page.locator("#smoothing").fill("0.8")
    assert len(hover(page, "loss")) == 5
    over = page.locator('[data-chart="loss"] .u-over')
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 50, steps=5)
    page.mouse.up()
    first = float(hover(page, "loss", 0.02)[0])
    assert first > 0.6  # epochs of 3
    page.locator("#reset").click()
    assert float(hover(page, "loss", 0.02)[0]) < first
    assert page.complaints == []


def test_the_slider_changes_the_picture(runs, open_page):
    page = open_page(f"file://{runs[0] / 'report.html'}")
    card = page.locator(".picture", has=page.locator("input")).first
    card.scroll_into_view_if_needed()
    before, label = pixels(card.locator("img")), card.locator("h3").inner_text()
    card.locator("input").fill("0")
    after = pixels(card.locator("img"))
    assert before.shape != after.shape or (before != after).any()
    assert card.locator("h3").inner_text() != label
    assert page.complaints == []


def test_the_cards_of_pictures_have_no_empty_areas(tmp_path, open_page):
    run = make_run(tmp_path / "run")
    for name, size in {
        "wide": (900, 100),
        "tall": (300, 900),
        "tiny": (8, 8),
        "flat": (50, 5),
    }.items():
        path = run / "visualizations" / name / "step_1.png"
        path.parent.mkdir(parents=True)
        Image.new("RGB", size, (200, 0, 0)).save(path)
    assert main(["report", str(run)]) == 0
    page = open_page(f"file://{run / 'report.html'}")
    cards = page.locator(".picture").all()
    assert len(cards) == 4
    for card in cards:
        picture = card.locator("img").bounding_box()
        box = card.bounding_box()
        assert box["width"] - picture["width"] < 40  # its padding
        assert box["height"] - picture["height"] < 80  # its padding and its title
    tiny = page.locator(".picture img.tiny")
    assert sorted(each.get_attribute("alt") for each in tiny.all()) == ["flat", "tiny"]
    assert page.complaints == []


def test_the_rates_of_several_optimizers_are_in_one_chart(tmp_path, open_page):
    rates = {"lr_critic": 0.1, "lr_generator": 0.2, "lr/head": 0.3, "lrs_loss": 1.0}
    run = make_run(tmp_path / "run", rows=[{**ROW, "iter": step, **rates} for step in (1, 2)])
    assert main(["report", str(run)]) == 0
    page = open_page(f"file://{run / 'report.html'}")
    chart = section(page, "Learning rate").locator('[data-chart="learning rate"]')
    for name in ("lr_critic", "lr_generator", "lr/head"):
        assert name in chart.inner_text()
    assert "lrs_loss" not in chart.inner_text()
    assert page.complaints == []


def test_the_page_of_a_resumed_run_shows_the_interruption(runs, open_page):
    page = open_page(f"file://{runs[1] / 'report.html'}")
    text = section(page, "Timeline").inner_text()
    assert "interruption at iteration" in text
    assert "resume at iteration" in text
    assert page.locator(".track .piece").count() == 2
    assert "in 2 sessions" in page.locator(".summary").inner_text()
    assert near(pixels(page.locator('[data-chart="loss"] canvas')), (0x25, 0x63, 0xC9)) > 100
    assert "training.epochs: 1000000 →" in section(page, "Warnings").inner_text()
    assert page.complaints == []


def test_two_runs_are_drawn_in_one_chart_and_their_configs_are_compared(runs, open_page, tmp_path):
    target = tmp_path / "both.html"
    assert main(["report", *map(str, runs), "-o", str(target)]) == 0
    page = open_page(f"file://{target}")
    picture = pixels(page.locator('[data-chart="loss"] canvas'))
    assert near(picture, (0x25, 0x63, 0xC9)) > 50
    assert near(picture, (0xD9, 0x58, 0x0D)) > 50
    assert len(hover(page, "loss")) == 5
    labels = page.locator('[data-chart="loss"] .u-legend .u-label').all_text_contents()
    assert "train/loss · demo" in labels
    assert "train/loss · crashed" in labels
    assert "training.epochs" in page.locator(".differences").inner_text()
    assert page.complaints == []


def test_the_legend_of_a_comparison_shows_the_color_and_the_dash_of_each_curve(
    runs, open_page, tmp_path
):
    target = tmp_path / "both.html"
    assert main(["report", *map(str, runs), "-o", str(target)]) == 0
    page = open_page(f"file://{target}")
    legend = page.locator('[data-chart="loss"] .u-legend')
    marks = {}
    for row in legend.locator(".u-series").all()[1:]:  # the first one is the x axis
        style = "(mark) => [getComputedStyle(mark).backgroundImage, mark.style.background]"
        image, background = row.locator(".u-marker").evaluate(style)
        marks[row.locator(".u-label").inner_text()] = (image != "none", background)
    assert marks["train/loss · demo"] == (False, "var(--c0)")
    assert marks["train/loss · crashed"] == (False, "var(--c1)")
    assert marks["val/loss · demo"][0]
    assert marks["val/loss · crashed"][0]
    assert len({background for _, background in marks.values()}) == 4
    solid, dashed = (pixels(legend.locator(".u-marker").nth(index)) for index in (1, 2))
    blue = [near(mark, (0x25, 0x63, 0xC9)) for mark in (solid, dashed)]
    assert blue[0] > blue[1] > 0
    assert page.complaints == []


def test_the_page_follows_the_color_scheme_and_is_light_on_paper(runs, open_page):
    page = open_page(f"file://{runs[0] / 'report.html'}", color_scheme="dark")
    picture = pixels(page.locator('[data-chart="loss"]'))
    assert picture.mean() < 80
    assert near(picture, (0x7A, 0xA7, 0xFF)) > 100
    page.emulate_media(color_scheme="light")
    assert pixels(page.locator('[data-chart="loss"]')).mean() > 180
    page.emulate_media(color_scheme="dark", media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert pixels(page.locator('[data-chart="loss"]')).mean() > 180
    assert page.complaints == []


def test_tables_on_a_phone_scroll_and_do_not_break_words(runs, open_page):
    page = open_page(f"file://{runs[0] / 'report.html'}")
    page.set_viewport_size({"width": 390, "height": 800})
    cells = page.locator(".scroll td", has_text="CheckpointHook")
    heights = [cell.bounding_box()["height"] for cell in cells.all() if cell.is_visible()]
    assert heights
    assert max(heights) < 50  # pixels: two lines
    # Charts follow the width in the next frame.
    wait_until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 390, "the layout")


def test_axes_have_whole_epochs_and_short_times(runs, open_page):
    page = open_page(f"file://{runs[0] / 'report.html'}")
    ends = [[60 * epoch, epoch] for epoch in range(1, 41)]
    assert page.evaluate("(ends) => epochTicks(ends.slice(0, 3), 10, 180, 8)", ends) == [
        60,
        120,
        180,
    ]
    few = page.evaluate("(ends) => epochTicks(ends, 10, 2400, 8)", ends)
    assert few == [60 * epoch for epoch in (5, 10, 15, 20, 25, 30, 35, 40)]
    assert page.evaluate("(ends) => epochTicks(ends, 70, 110, 8)", ends) == [70, 90, 110]
    texts = page.evaluate("[0, 0.1, 0.02345678, 2.5e-6, 1.5, 90].map(seconds)")
    assert texts == ["0 s", "100 ms", "23.46 ms", "2.5 µs", "1.5 s", "1 min 30 s"]
