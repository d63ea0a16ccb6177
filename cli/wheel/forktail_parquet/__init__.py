# SPDX-License-Identifier: MIT
"""forktail-parquet, a program that needs the Arrow libraries of the Python package pyarrow."""
