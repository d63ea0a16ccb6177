# SPDX-License-Identifier: MIT
"""Spark jobs over the data sets of many hosts that `forktail export --data-set` makes."""
