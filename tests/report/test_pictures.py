"""The pictures of a run."""

from __future__ import annotations

import base64
import itertools

import pytest
from PIL import Image

from hookline.report.pictures import embed_pictures, find_pictures


@pytest.fixture
def folder(tmp_path):
    """A run with 20 pictures, a file with another name, and a link."""
    series = tmp_path / "visualizations" / "A" / "b"
    series.mkdir(parents=True)
    for step in range(20):
        Image.effect_noise((40, 40), 99).save(series / f"step_{step:06d}.png")
    (series / "other.png").write_text("x")
    (series / "step_000099.png").symlink_to("/etc/passwd")
    return tmp_path


def test_pictures_are_found_in_order_and_links_are_not_followed(folder):
    found = find_pictures(folder)
    assert list(found) == ["A/b"]
    assert [picture.step for picture in found["A/b"]] == list(range(20))


def test_without_pictures_nothing_is_found(tmp_path):
    assert find_pictures(tmp_path) == {}


def test_pictures_are_embedded_as_data(folder):
    found = find_pictures(folder)
    (series,) = embed_pictures(found)
    assert series["left_out"] == 0
    data = base64.b64decode(series["frames"][3]["src"].partition(",")[2])
    assert data == found["A/b"][3].path.read_bytes()


def test_too_many_pictures_are_reduced_evenly_and_the_last_one_is_kept(folder):
    found = find_pictures(folder)
    (series,) = embed_pictures(found, budget=sum(each.size for each in found["A/b"]) // 2)
    steps = [frame["step"] for frame in series["frames"]]
    assert steps[-1] == 19
    assert 5 <= len(steps) <= 10
    assert series["left_out"] == 20 - len(steps)
    gaps = [after - before for before, after in itertools.pairwise(steps)]
    assert max(gaps) - min(gaps) <= 1


def test_without_a_budget_no_picture_is_embedded(folder):
    (series,) = embed_pictures(find_pictures(folder), budget=10)
    assert series["frames"] == []
    assert series["left_out"] == 20


def test_a_small_series_leaves_its_share_to_a_large_one(tmp_path):
    for name, count in (("small", 1), ("large", 9)):
        (tmp_path / "visualizations" / name).mkdir(parents=True)
        for step in range(count):
            path = tmp_path / "visualizations" / name / f"step_{step}.png"
            path.write_bytes(bytes(100))
    kept = {
        each["name"]: len(each["frames"]) for each in embed_pictures(find_pictures(tmp_path), 900)
    }
    assert kept["small"] == 1
    assert kept["large"] >= 6
