# SPDX-License-Identifier: MIT
"""The settings of a server and its host that cause latency spikes, each with the value seen and why it matters here."""
