# SPDX-License-Identifier: MIT
"""For spark-submit: the package as a file that it can start."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forktail_fleet.__main__ import main  # noqa: E402

sys.exit(main())
