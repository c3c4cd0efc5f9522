"""The interface of MMEngine 0.10 on Hookline's engine.

Where MMEngine is installed, its modules are the real ones, except those in `overlay`. Elsewhere the
modules here cover the code of MMEngine's document on hooks, with the parts that its runner needs: a
model, data, metrics, an optimizer and learning rates.

Code written for MMEngine runs with `mmengine` replaced by this package. After
`hookline.compat.install("mmengine")`, `import mmengine` imports it; `hookline run-as mmengine
script.py` does so for a script.
"""

from importlib import import_module
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.overlay import REPLACED
from hookline.compat.overlay import begin

ADVICE = "pip install 'hookline[mmengine]' covers all of MMEngine"

if begin("mmengine", REPLACED):

    def __getattr__(name: str) -> Any:
        return getattr(import_module("mmengine"), name)

else:
    __version__ = "0.10.7"  # the version whose interface this is
    version_info = (0, 10, 7)
    __getattr__ = not_covered(
        __name__,
        (),
        advice=ADVICE,
        lazy={
            "Config": f"{__name__}.config",
            "ConfigDict": f"{__name__}.config",
            "HOOKS": f"{__name__}.registry",
            "HistoryBuffer": f"{__name__}.logging",
            "MMLogger": f"{__name__}.logging",
            "MessageHub": f"{__name__}.logging",
            "Registry": f"{__name__}.registry",
            "print_log": f"{__name__}.logging",
        },
    )
