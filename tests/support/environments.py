"""Environments of the processes that tests start."""

from __future__ import annotations

import os
import sys


def same_imports(**variables: str) -> dict[str, str]:
    """This process's environment for a Python that imports from the same folders; `variables` are added."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | variables
