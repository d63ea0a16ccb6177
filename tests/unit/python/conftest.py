# SPDX-License-Identifier: MIT
"""Tests import the package from the source tree, also when pytest is started by hand."""

import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "python"))
