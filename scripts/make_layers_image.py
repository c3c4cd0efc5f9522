"""Draw docs/images/layers.svg: the layers of the package, from its import contract.

python scripts/make_layers_image.py
"""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "layers.svg"
CAPTIONS = {
    "cli": "commands; other frameworks",
    "verify": "trial runs",
    "runner": "the public interface",
    "config": "from a file to objects",
    "hooks": "built-in hooks",
    "visual": "pictures, reports",
    "engine": "the loop",
    "data": "parts of a training",
    "profiling": "times, records, files, steps",
    "dist": "ranks",
    "registry": "names to classes; batches",
    "signature": "small tools",
}
TITLE = "The parts of the package, each row importing only from rows below it"
WIDTH = 900
ROW_HEIGHT = 40
BOX_HEIGHT = 28
LEFT = 60
CAPTION_X = 700
LETTER_WIDTH = 7.8
MONOSPACE = "ui-monospace, Menlo, Consolas, monospace"


def main() -> None:
    PICTURE.write_text(draw(read_layers()), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")


def read_layers() -> list[list[str]]:
    """Return the names of each layer, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [
        [name.strip().removeprefix("hookline.") for name in layer.split("|")] for layer in layers
    ]


def draw(layers: list[list[str]]) -> str:
    """Return the picture: a row for each layer, wrapped where it is too long."""
    lines: list[str] = []
    top = 14
    for names in layers:
        x = LEFT
        caption_top = top
        for name in names:
            width = round(len(name) * LETTER_WIDTH + 22)
            if x + width > CAPTION_X - 10:
                x = LEFT
                top += ROW_HEIGHT - 6
            lines += box(name, x, top, width)
            x += width + 10
        lines.append(caption(CAPTIONS.get(names[0], ""), caption_top))
        top += ROW_HEIGHT
    return "\n".join([*header(top), *lines, *arrow(top), "</svg>"]) + "\n"


def header(height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{TITLE}">',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#555"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]


def box(name: str, x: int, y: int, width: int) -> list[str]:
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="6" fill="#e8eaf6" '
        'stroke="#3f51b5"/>',
        f'<text x="{x + width / 2}" y="{y + 18.5}" text-anchor="middle" '
        f'font-family="{MONOSPACE}" font-size="13" fill="#1a237e">{name}</text>',
    ]


def caption(text: str, y: int) -> str:
    return (
        f'<text x="{CAPTION_X}" y="{y + 18.5}" font-family="system-ui, sans-serif" '
        f'font-size="12" fill="#555">{text}</text>'
    )


def arrow(height: int) -> list[str]:
    return [
        f'<path d="M34,18 L34,{height - 28}" fill="none" stroke="#555" stroke-width="1.4" '
        'marker-end="url(#a)"/>',
        f'<text transform="translate(24,{height / 2}) rotate(-90)" text-anchor="middle" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#555">imports</text>',
    ]


if __name__ == "__main__":
    main()
