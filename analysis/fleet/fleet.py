# SPDX-License-Identifier: MIT
"""Entry point for spark-submit, which starts a file."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forktail_fleet.__main__ import main  # noqa: E402

sys.exit(main())
