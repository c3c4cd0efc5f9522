"""`mmengine.config`: configs in Python, YAML and JSON files that inherit from each other."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.config.config import Config, DictAction
from hookline.compat.mmengine.config.config_dict import ConfigDict

__all__ = ["Config", "ConfigDict", "DictAction"]
__getattr__ = not_covered(
    __name__,
    __all__,
    {
        "read_base": "configs made of import statements (`with read_base()`) are not covered; "
        "name their bases in `_base_ = [...]`"
    },
)
