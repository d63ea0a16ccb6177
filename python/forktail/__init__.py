# SPDX-License-Identifier: MIT
"""forktail names the kernel event behind Redis latency spikes. This package is its API (docs/reference/python.md).

Names are imported at their first use, so that `import forktail` needs no library and takes no time.
"""

from importlib import import_module
from typing import Any

__version__ = "1.0.0"

# The public name, and the module that defines it. No module has a public name: importing it would replace the function.
_EXPORTS = {
    "Failure": "failure",
    "load": "load_generator",
    "open": "recording",
    "record": "recorder",
}
__all__ = ["Failure", "load", "open", "record"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'forktail' has no attribute '{name}'")
    return getattr(import_module(f"forktail.{_EXPORTS[name]}"), name)
