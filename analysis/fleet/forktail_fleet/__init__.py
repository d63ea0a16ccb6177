# SPDX-License-Identifier: MIT
"""What the runs of many hosts say together: jobs for Spark over data sets that `forktail export --data-set` makes."""
