# The public names of this package, for type checkers and for the lazy imports of `__init__.py`.

from .config import load_config as load_config
from .data import DATASETS as DATASETS
from .data import CombinedLoader as CombinedLoader
from .data import make_loader as make_loader
from .driver import drive as drive
from .engine import HOOKS as HOOKS
from .engine import BaseHook as BaseHook
from .engine import Hook as Hook
from .engine import HookRegistry as HookRegistry
from .engine import Interrupted as Interrupted
from .engine import Priority as Priority
from .engine import get_priority as get_priority
from .engine import state as state
from .errors import ConfigError as ConfigError
from .errors import HooklineError as HooklineError
from .events import WRITERS as WRITERS
from .hooks import build_hook as build_hook
from .hooks import build_hooks as build_hooks
from .hooks import get_default_hooks as get_default_hooks
from .metrics import METRICS as METRICS
from .models import MODELS as MODELS
from .optim import LOSSES as LOSSES
from .optim import OPTIMIZERS as OPTIMIZERS
from .optim import SCHEDULERS as SCHEDULERS
from .runner import Runner as Runner
from .version import __version__ as __version__
