"""The interface of MMEngine 0.10 on Hookline's engine.

Code written for MMEngine runs with `mmengine` replaced by this package. After
`hookline.compat.install("mmengine")`, `import mmengine` imports it; `hookline run-as mmengine
script.py` does so for a script.
"""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.config import Config, ConfigDict, DictAction
from hookline.compat.mmengine.fileio import (
    dump,
    exists,
    get_text,
    join_path,
    list_from_file,
    load,
    put_text,
)
from hookline.compat.mmengine.logging import HistoryBuffer, MessageHub, MMLogger, print_log
from hookline.compat.mmengine.registry import *  # noqa: F403
from hookline.compat.mmengine.utils import (
    ManagerMixin,
    apply_to,
    check_file_exist,
    digit_version,
    is_list_of,
    is_method_overridden,
    is_seq_of,
    is_str,
    is_tuple_of,
    mkdir_or_exist,
    scandir,
)

__version__ = "0.10.7"  # the version whose interface this is
version_info = (0, 10, 7)

__all__ = [
    "Config",
    "ConfigDict",
    "DictAction",
    "HistoryBuffer",
    "MMLogger",
    "ManagerMixin",
    "MessageHub",
    "apply_to",
    "check_file_exist",
    "digit_version",
    "dump",
    "exists",
    "get_text",
    "is_list_of",
    "is_method_overridden",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "join_path",
    "list_from_file",
    "load",
    "mkdir_or_exist",
    "print_log",
    "put_text",
    "scandir",
]
__getattr__ = not_covered(
    __name__,
    [
        *__all__,
        "runner",
        "hooks",
        "model",
        "optim",
        "dataset",
        "evaluator",
        "visualization",
        "structures",
    ],
)
