# SPDX-License-Identifier: MIT
"""forktail try: a setting tried on a live server, old and new in turn, while it records. The old value comes back."""
