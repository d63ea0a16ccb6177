# SPDX-License-Identifier: MIT
"""Programs, swap, cgroups and settings of one run on this host. A keeper undoes all of it, however the run ends."""
