#!/bin/sh
# SPDX-License-Identifier: MIT
# Measures `forktail explain` and `forktail report` by the length of a run. explain_speed.py does the work:
#   bench/explain.sh [OPTION...] BUILD_DIR [MILLION_REQUESTS...]
exec python3 "$(dirname -- "$0")/explain_speed.py" "$@"
