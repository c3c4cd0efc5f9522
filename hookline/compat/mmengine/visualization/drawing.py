"""Drawing on an image, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class Drawing:
    """Each method draws on the current image and returns the visualizer, so that calls can be chained."""

    _image: np.ndarray[Any, Any] | None = None

    def set_image(self, image: np.ndarray[Any, Any]) -> None:
        """Begin with an image of bytes, height x width x 3 in RGB."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._image = np.asarray(image).astype(np.uint8)
        self.height, self.width = self._image.shape[:2]
        figure = Figure(figsize=((self.width + 0.01) / 100, (self.height + 0.01) / 100), dpi=100, frameon=False)
        self._canvas: Any = FigureCanvasAgg(figure)
        self.ax_save: Any = figure.add_axes((0, 0, 1, 1))
        self.ax_save.axis("off")
        self._show()

    def get_image(self) -> np.ndarray[Any, Any]:
        """The image with all that was drawn."""
        if self._image is None:
            raise AssertionError("Please set image using `set_image`")
        self._canvas.draw()
        pixels = np.asarray(self._canvas.buffer_rgba())
        return pixels[: self.height, : self.width, :3].copy()

    def draw_bboxes(
        self,
        bboxes: Any,
        edge_colors: Any = "g",
        line_styles: Any = "-",
        line_widths: Any = 2,
        face_colors: Any = "none",
        alpha: float = 0.8,
    ) -> Any:
        corners = _numbers(bboxes).reshape(-1, 4)
        polygons = [np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]]) for x1, y1, x2, y2 in corners]
        return self.draw_polygons(polygons, edge_colors, line_styles, line_widths, face_colors, alpha)

    def draw_polygons(
        self,
        polygons: Any,
        edge_colors: Any = "g",
        line_styles: Any = "-",
        line_widths: Any = 2,
        face_colors: Any = "none",
        alpha: float = 0.8,
    ) -> Any:
        from matplotlib.collections import PolyCollection

        shapes = [_numbers(each) for each in (polygons if isinstance(polygons, list) else [polygons])]
        style = {"linestyles": line_styles, "edgecolors": _colours(edge_colors), "linewidths": line_widths, "alpha": alpha}
        self.ax_save.add_collection(PolyCollection(shapes, facecolors=_colours(face_colors), **style))
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
        places = _numbers(positions).reshape(-1, 2)
        words = [texts] if isinstance(texts, str) else list(texts)
        for index, (word, (x, y)) in enumerate(zip(words, places, strict=True)):
            style = {"va": vertical_alignments, "ha": horizontal_alignments, "family": font_families, "bbox": _at(bboxes, index)}
            size = _at(font_sizes, index) or max(min(self.height, self.width) // 20, 6)
            self.ax_save.text(x, y, word, size=size, color=_colours(_at(colors, index)), **style)
        return self

    def draw_points(self, positions: Any, colors: Any = "g", marker: Any = None, sizes: Any = None) -> Any:
        places = _numbers(positions).reshape(-1, 2)
        self.ax_save.scatter(places[:, 0], places[:, 1], c=_colours(colors), s=sizes, marker=marker)
        return self

    def draw_lines(self, x_datas: Any, y_datas: Any, colors: Any = "g", line_styles: Any = "-", line_widths: Any = 2) -> Any:
        for index, (xs, ys) in enumerate(zip(_numbers(x_datas).reshape(-1, 2), _numbers(y_datas).reshape(-1, 2), strict=True)):
            style = {"linestyle": _at(line_styles, index), "linewidth": _at(line_widths, index)}
            self.ax_save.plot(xs, ys, color=_colours(_at(colors, index)), **style)
        return self

    def draw_circles(
        self,
        center: Any,
        radius: Any,
        edge_colors: Any = "g",
        line_styles: Any = "-",
        line_widths: Any = 2,
        face_colors: Any = "none",
        alpha: float = 0.8,
    ) -> Any:
        from matplotlib.patches import Circle

        for index, (place, size) in enumerate(zip(_numbers(center).reshape(-1, 2), _numbers(radius).reshape(-1), strict=True)):
            style = {"ec": _colours(_at(edge_colors, index)), "ls": _at(line_styles, index), "lw": _at(line_widths, index)}
            self.ax_save.add_patch(Circle(tuple(place), size, fc=_colours(_at(face_colors, index)), alpha=alpha, **style))
        return self

    def draw_binary_masks(self, binary_masks: Any, colors: Any = "g", alphas: Any = 0.8) -> Any:
        from matplotlib.colors import to_rgb

        masks = _numbers(binary_masks).astype(bool)
        image = self.get_image().astype(float)
        for index, mask in enumerate(masks[None] if masks.ndim == 2 else masks):
            colour, share = np.array(to_rgb(_colours(_at(colors, index)))) * 255, _at(alphas, index)
            image[mask] = image[mask] * (1 - share) + colour * share
        self._image = image.astype(np.uint8)
        self._show()
        return self

    @staticmethod
    def draw_featmap(
        featmap: torch.Tensor, overlaid_image: Any = None, channel_reduction: str | None = "squeeze_mean", **kwargs: Any
    ) -> Any:
        """A feature map (C x H x W) as a heat map, over an image if there is one."""
        from hookline.visual.heat_maps import overlay, unit_range

        if channel_reduction not in ("squeeze_mean", "select_max"):
            raise AssertionError(f"channel_reduction: 'squeeze_mean' and 'select_max' are covered, got {channel_reduction!r}")
        maps = featmap.detach().cpu().float()
        heat = maps.mean(0) if channel_reduction == "squeeze_mean" else maps[maps.mean((1, 2)).argmax()]
        image = np.full((*heat.shape, 3), 255, np.uint8) if overlaid_image is None else np.asarray(overlaid_image, np.uint8)
        if tuple(heat.shape) != image.shape[:2]:
            heat = torch.nn.functional.interpolate(heat[None, None], size=image.shape[:2], mode="bilinear")[0, 0]
        return overlay(image, unit_range(heat.numpy()))

    def show(self, drawn_img: Any = None, win_name: str = "image", wait_time: float = 0.0, continue_key: str = " ", **kwargs: Any) -> None:
        """There are no windows here: save the picture instead, with `add_image`."""
        raise NotImplementedError("windows are not covered; use visualizer.add_image(name, visualizer.get_image())")

    def _show(self) -> None:
        self.ax_save.cla()
        self.ax_save.axis("off")
        self.ax_save.imshow(self._image, extent=(0, self.width, self.height, 0), interpolation="none")


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _at(value: Any, index: int) -> Any:
    """One of a list, or the same for all."""
    return value[index] if isinstance(value, list) else value


def _colours(value: Any) -> Any:
    """Colours as matplotlib has them: (255, 0, 0) becomes (1, 0, 0)."""
    if isinstance(value, tuple) and not isinstance(value[0], str):
        return tuple(part / 255 for part in value)
    return [_colours(each) for each in value] if isinstance(value, list) else value
