# SPDX-License-Identifier: MIT
"""Requests seen in the server's kernel against the load generator's own log. A request that was seen must be one that
was sent, in the connection's order; it arrived no earlier than it was sent, and was answered no later than the client
had the answer.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from harness import ft


@dataclass
class Agreement:
    sockets: int = 0  # with requests that were seen
    sent: int = 0  # on these
    seen: int = 0  # likewise
    late: int = 0  # seen, but the answer only after the client had it
    invented: int = 0  # seen, but no request that was sent has this command and includes these times

    @property
    def missed(self):
        return self.sent - (self.seen - self.invented)


def commands(log):
    """The command of each request as the load generator names it, which does not distinguish memcached's protocols."""
    names = [{"MG": "GET", "MS": "SET"}.get(name, name) for name in log.manifest["ops"]]
    return np.array(names)[log.requests.op]


def _by_socket(log):
    """The requests in the order of sending, by the client's socket: its port, or with a Unix socket its inode. Ports
    that are used again continue the list."""
    q = log.requests
    all_requests = np.rec.fromarrays(
        [commands(log), q.start_ns, q.end_ns, q.connection], names="command,start_ns,end_ns,connection"
    )
    all_requests = all_requests[q.status != ft.STATUS_UNSENT]
    opened = defaultdict(list)  # the generator opens connections with one id again and again
    for (connection, opened_ns), c in sorted(log.connection_sockets.items()):
        opened[connection].append((opened_ns, ("port", c.local_port) if c.local_port else ("inode", c.inode)))
    parts = defaultdict(list)
    by_connection = all_requests[np.argsort(all_requests.connection, kind="stable")]
    for own in np.split(by_connection, np.flatnonzero(np.diff(by_connection.connection)) + 1):
        if not len(own):
            continue
        times, sockets = zip(*opened[own.connection[0]], strict=True)
        which = np.maximum(np.searchsorted(np.array(times, np.uint64), own.start_ns, "right") - 1, 0)
        for i in set(which):
            parts[sockets[i]].append(own[which == i])
    joined = {socket: np.concatenate(part).view(np.recarray) for socket, part in parts.items()}
    return {socket: one[np.argsort(one.start_ns, kind="stable")] for socket, one in joined.items()}


def _compare_socket(sent, seen, a):
    """If all were seen, they are the same ones in the same order. Else finds each request that was seen among those
    that were sent: the first one after its predecessor that agrees."""
    if len(sent) == len(seen):
        same = (sent.command == seen.command) & (sent.start_ns <= seen.start_ns) & (sent.end_ns > seen.start_ns)
        a.invented += int((~same).sum())
        a.late += int((same & (sent.end_ns < seen.end_ns)).sum())
        return
    names, ends, following = sent.command.tolist(), sent.end_ns.tolist(), 0
    sent_before = np.searchsorted(sent.start_ns, seen.start_ns, "right")
    columns = (seen.command, seen.start_ns, seen.end_ns, sent_before)
    for name, start_ns, end_ns, before in zip(*(column.tolist() for column in columns), strict=True):
        candidates = [i for i in range(following, before) if names[i] == name and ends[i] > start_ns]
        in_time = [i for i in candidates if ends[i] >= end_ns]
        a.late += bool(candidates and not in_time)
        a.invented += not candidates
        if candidates:
            following = (in_time or candidates)[0] + 1


def compare(load, kernel):
    """The Agreement of a load's log and a recording. Commands that the load generator does not log, such as those when
    a connection begins, are left out, and so are requests before its first and after its last one."""
    a = Agreement()
    seen = _by_socket(kernel)
    logged = [*load.manifest["ops"], "unknown"]
    begin, end = load.requests.start_ns.min(), load.requests.end_ns.max()
    for socket, sent in _by_socket(load).items():
        if socket not in seen:  # not sampled
            continue
        one = seen[socket]
        one = one[np.isin(one.command, logged) & (one.start_ns >= begin) & (one.start_ns <= end)]
        a.sockets += len(one) > 0
        a.sent += len(sent)
        a.seen += len(one)
        _compare_socket(sent, one, a)
    return a


def note(kernel, kind="requests"):
    """The recorder's note of this kind. requests: what it left out."""
    return next(note for note in kernel.notes if note.get("kind") == kind)


def seen_commands(kernel, wanted=slice(None)):
    """How many requests of each command were seen, of all requests or of those that a mask selects."""
    return Counter(np.array(kernel.manifest["ops"])[kernel.requests.op[wanted]].tolist())
