"""Load, override, check and build configs."""

from hookline.config.build import build
from hookline.config.load import load_config
from hookline.config.locations import Config
from hookline.config.save import save_resolved
from hookline.config.validate import check, validate
from hookline.secrets import mask_secrets

__all__ = ["Config", "build", "check", "load_config", "mask_secrets", "save_resolved", "validate"]
