"""Drawing: pictures are pixels with texts (`canvas`), composed by the modules named after what they show, rendered by a backend.

Nothing here imports matplotlib before it is needed; pyplot and its global state are never used.
"""

from hookline.visual.bars import gradient_picture
from hookline.visual.canvas import Picture
from hookline.visual.heat_maps import as_maps, feature_map_picture, mosaic
from hookline.visual.render import render

__all__ = ["Picture", "as_maps", "feature_map_picture", "gradient_picture", "mosaic", "render"]
