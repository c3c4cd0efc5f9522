"""Drawing on an image with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

DPI = 100


class Drawing:
    """Methods that draw on the current image. They return the visualizer, for chained calls."""

    _image: np.ndarray[Any, Any] | None = None

    def set_image(self, image: np.ndarray[Any, Any]) -> None:
        """Begin with an image of bytes, height x width x 3 in RGB."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._image = np.asarray(image).astype(np.uint8)
        self.height, self.width = self._image.shape[:2]
        # A fraction of a pixel more, because matplotlib rounds down.
        size = ((self.width + 0.01) / DPI, (self.height + 0.01) / DPI)
        figure = Figure(figsize=size, dpi=DPI, frameon=False)
        self._canvas: Any = FigureCanvasAgg(figure)
        self.ax_save: Any = figure.add_axes((0, 0, 1, 1))
        self._show()

    def get_image(self) -> np.ndarray[Any, Any]:
        """Return the image with everything that was drawn."""
        if self._image is None:
            raise AssertionError("Please set image using `set_image`")
        self._canvas.draw()
        pixels = np.asarray(self._canvas.buffer_rgba())
        return pixels[: self.height, : self.width, :3].copy()

    def draw_bboxes(self, bboxes: Any, *style: Any, **named_style: Any) -> Any:
        """Draw boxes [N, 4] given as x1, y1, x2, y2. Other arguments: see `_patch_style`."""
        polygons = []
        for x1, y1, x2, y2 in _to_numpy(bboxes).reshape(-1, 4):
            polygons.append(np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]]))
        return self.draw_polygons(polygons, *style, **named_style)

    def draw_polygons(self, polygons: Any, *style: Any, **named_style: Any) -> Any:
        """Draw one polygon [M, 2] or a list of them. Other arguments: see `_patch_style`."""
        from matplotlib.collections import PolyCollection

        if not isinstance(polygons, list):
            polygons = [polygons]
        corners = [_to_numpy(polygon) for polygon in polygons]
        options = _patch_style(*style, **named_style)
        self.ax_save.add_collection(PolyCollection(corners, **options))
        return self

    def draw_circles(self, center: Any, radius: Any, *style: Any, **named_style: Any) -> Any:
        """Draw circles with centers [N, 2] and radii [N]. Other arguments: see `_patch_style`."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Circle

        centers = _to_numpy(center).reshape(-1, 2)
        radii = _to_numpy(radius).reshape(-1)
        circles = [Circle(tuple(place), size) for place, size in zip(centers, radii, strict=True)]
        options = _patch_style(*style, **named_style)
        self.ax_save.add_collection(PatchCollection(circles, **options))
        return self

    def draw_texts(
        self,
        texts: Any,
        positions: Any,
        font_sizes: Any = None,
        colors: Any = "g",
        vertical_alignments: str = "top",
        horizontal_alignments: str = "left",
        font_families: str = "sans-serif",
        bboxes: Any = None,
        font_properties: Any = None,
    ) -> Any:
        """Draw one text or a list of them."""
        if isinstance(texts, str):
            texts = [texts]
        places = _to_numpy(positions).reshape(-1, 2)
        default_size = max(min(self.height, self.width) // 20, 6)
        for index, (text, (x, y)) in enumerate(zip(texts, places, strict=True)):
            self.ax_save.text(
                x,
                y,
                text,
                size=_item(font_sizes, index) or default_size,
                color=_to_fractions(_item(colors, index)),
                va=vertical_alignments,
                ha=horizontal_alignments,
                family=font_families,
                bbox=_item(bboxes, index),
            )
        return self

    def draw_points(
        self, positions: Any, colors: Any = "g", marker: Any = None, sizes: Any = None
    ) -> Any:
        """Draw points [N, 2]."""
        x, y = _to_numpy(positions).reshape(-1, 2).T
        self.ax_save.scatter(x, y, c=_to_fractions(colors), s=sizes, marker=marker)
        return self

    def draw_lines(
        self,
        x_datas: Any,
        y_datas: Any,
        colors: Any = "g",
        line_styles: Any = "-",
        line_widths: Any = 2,
    ) -> Any:
        """Draw lines between two points each, given as [N, 2] for x and for y."""
        starts_and_ends_x = _to_numpy(x_datas).reshape(-1, 2)
        starts_and_ends_y = _to_numpy(y_datas).reshape(-1, 2)
        lines = zip(starts_and_ends_x, starts_and_ends_y, strict=True)
        for index, (x, y) in enumerate(lines):
            self.ax_save.plot(
                x,
                y,
                color=_to_fractions(_item(colors, index)),
                linestyle=_item(line_styles, index),
                linewidth=_item(line_widths, index),
            )
        return self

    def draw_binary_masks(self, binary_masks: Any, colors: Any = "g", alphas: Any = 0.8) -> Any:
        """Draw one mask [H, W] or several [N, H, W]."""
        from matplotlib.colors import to_rgb

        masks = _to_numpy(binary_masks).astype(bool)
        if masks.ndim == 2:
            masks = masks[None]
        image = self.get_image().astype(float)
        for index, mask in enumerate(masks):
            color = np.array(to_rgb(_to_fractions(_item(colors, index)))) * 255
            alpha = _item(alphas, index)
            image[mask] = image[mask] * (1 - alpha) + color * alpha
        self._image = image.astype(np.uint8)
        self._show()
        return self

    @staticmethod
    def draw_featmap(
        featmap: torch.Tensor,
        overlaid_image: Any = None,
        channel_reduction: str | None = "squeeze_mean",
        **kwargs: Any,
    ) -> Any:
        """Return a feature map (C x H x W) as a heat map, over an image if there is one."""
        from hookline.visual.heat_maps import overlay, unit_range

        maps = featmap.detach().cpu().float()
        if channel_reduction == "squeeze_mean":
            heat = maps.mean(0)
        elif channel_reduction == "select_max":
            heat = maps[maps.mean((1, 2)).argmax()]
        else:
            raise AssertionError(
                "channel_reduction: 'squeeze_mean' and 'select_max' are covered,"
                f" got {channel_reduction!r}"
            )
        image = np.full((*heat.shape, 3), 255, np.uint8)
        if overlaid_image is not None:
            image = np.asarray(overlaid_image, np.uint8)
        if tuple(heat.shape) != image.shape[:2]:
            size = image.shape[:2]
            heat = torch.nn.functional.interpolate(heat[None, None], size=size, mode="bilinear")
            heat = heat[0, 0]
        return overlay(image, unit_range(heat.numpy()), opacity=(0.55, 0.55))

    def show(
        self,
        drawn_img: Any = None,
        win_name: str = "image",
        wait_time: float = 0.0,
        continue_key: str = " ",
        **kwargs: Any,
    ) -> None:
        """Raise NotImplementedError: windows are not covered. Save the image with `add_image`."""
        raise NotImplementedError(
            "windows are not covered; use visualizer.add_image(name, visualizer.get_image())"
        )

    def _show(self) -> None:
        self.ax_save.cla()
        self.ax_save.axis("off")
        extent = (0, self.width, self.height, 0)
        self.ax_save.imshow(self._image, extent=extent, interpolation="none")


def _patch_style(
    edge_colors: Any = "g",
    line_styles: Any = "-",
    line_widths: Any = 2,
    face_colors: Any = "none",
    alpha: float = 0.8,
) -> dict[str, Any]:
    """Return options of a matplotlib collection; each is one value or a list with one per shape."""
    return {
        "edgecolors": _to_fractions(edge_colors),
        "linestyles": line_styles,
        "linewidths": line_widths,
        "facecolors": _to_fractions(face_colors),
        "alpha": alpha,
    }


def _to_numpy(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    return np.asarray(value)


def _item(value: Any, index: int) -> Any:
    """Return an item of a list, or a value that is the same for all."""
    return value[index] if isinstance(value, list) else value


def _to_fractions(value: Any) -> Any:
    """Return colors as matplotlib takes them: (255, 0, 0) becomes (1, 0, 0)."""
    if isinstance(value, list):
        return [_to_fractions(color) for color in value]
    if isinstance(value, tuple) and not isinstance(value[0], str):
        return tuple(part / 255 for part in value)
    return value
