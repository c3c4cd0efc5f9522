"""Drawing. Importing this imports matplotlib, so hooks do it when they draw; pyplot and its global state are never used."""

from hookline.visual.bars import gradient_figure
from hookline.visual.heat_maps import as_maps, feature_map_figure, mosaic
from hookline.visual.publish import publish

__all__ = ["as_maps", "feature_map_figure", "gradient_figure", "mosaic", "publish"]
