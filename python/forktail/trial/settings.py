# SPDX-License-Identifier: MIT
"""The settings of Redis that `forktail try` may change: CONFIG SET takes them at once, and setting the old value undoes
them. Others are refused: an allow-list, because a wrong row could lose data."""

from dataclasses import dataclass


@dataclass
class Setting:
    """A setting that can be tried. loses: what values may lose when the server or its host ends, by value, the safest
    first; a value that is not in it loses nothing."""

    name: str
    loses: tuple[tuple[str, str], ...] = ()

    def warns_of(self, new: str, old: str) -> str:
        """What the new value may lose that the old one does not; "" if nothing."""
        rank = {value: i for i, (value, _) in enumerate(self.loses)}
        at = rank.get(new.lower(), -1)
        return self.loses[at][1] if at > rank.get(old.lower(), -1) else ""


_UP_TO_30_S = "writes of up to 30 seconds"
SETTINGS = {
    one.name: one
    for one in (
        Setting("active-expire-effort"),
        Setting("activedefrag"),
        Setting("activerehashing"),
        Setting("aof-rewrite-incremental-fsync"),
        Setting("appendfsync", (("everysec", "writes of a second"), ("no", _UP_TO_30_S))),
        Setting("client-output-buffer-limit"),
        Setting("dynamic-hz"),
        Setting("hz"),
        Setting("jemalloc-bg-thread"),
        Setting("latency-monitor-threshold"),
        Setting("latency-tracking"),
        Setting("lazyfree-lazy-eviction"),
        Setting("lazyfree-lazy-expire"),
        Setting("lazyfree-lazy-server-del"),
        Setting("lazyfree-lazy-user-del"),
        Setting("lazyfree-lazy-user-flush"),
        Setting("maxmemory-samples"),
        Setting("no-appendfsync-on-rewrite", (("yes", _UP_TO_30_S),)),
        Setting("rdb-save-incremental-fsync"),
        Setting("rdbchecksum"),
        Setting("rdbcompression"),
        Setting("repl-disable-tcp-nodelay"),
        Setting("repl-diskless-sync"),
        Setting("repl-diskless-sync-delay"),
        Setting("save", (("", "writes since the last snapshot"),)),
        Setting("slowlog-log-slower-than"),
        Setting("tcp-keepalive"),
        Setting("timeout"),
    )
}
