# SPDX-License-Identifier: MIT
"""forktail forecast: what a snapshot, an AOF rewrite or a full synchronization would cost now, before it is made."""
