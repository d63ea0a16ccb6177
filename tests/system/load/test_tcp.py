# SPDX-License-Identifier: MIT
"""What TCP did with the load generator's own connections is in its log."""

import os
import signal
import time

from harness import eventually
from server_counts import calls


def test_a_window_that_the_server_kept_full_is_logged_with_the_slow_request(serve, start_load):
    redis = serve("redis", tcp=True)
    load = start_load(*redis.load_words(), "-t", "set", "-d", 8_000_000, "-c", 1, "--duration", "2s")
    assert eventually(lambda: calls(redis, "set") > 5)
    # Stopped, it reads nothing, and a request has more bytes than the window. It may have read all of one request.
    for _ in range(8):
        os.kill(redis.pid, signal.SIGSTOP)
        time.sleep(0.05)
        os.kill(redis.pid, signal.SIGCONT)
        time.sleep(0.04)
    log = load.done(0).log
    limited = log.load_tcp[log.load_tcp.receiver_limited_us + log.load_tcp.sender_limited_us > 0]
    assert len(limited) > 0
    for look in limited:
        slow = log.requests[log.requests.end_ns == look.t_ns]
        assert len(slow) == 1
        assert slow[0].connection == look.connection
        assert look.before_ns <= look.t_ns


def test_a_unix_socket_has_no_tcp(redis, start_load):
    log = start_load(*redis.load_words(), "-n", 100).done(0).log
    assert len(log.load_tcp) == 0
