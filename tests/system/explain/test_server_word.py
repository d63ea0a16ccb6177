# SPDX-License-Identifier: MIT
"""Without a recorder on the server's host, forktail explain uses what the server itself reports: the load generator's
observer logs the slow log and forks, and explain shows them with their episode.
"""

import time

from harness import evidence, explain, forktail


def test_a_slow_command_known_only_to_the_server_is_named_with_its_episode(serve, start_load):
    redis = serve("redis", "--slowlog-log-slower-than", "10000", "--enable-debug-command", "yes")
    load = start_load("-s", redis.socket, "--rate", 1000, "--duration", 4, observer=True)
    time.sleep(1.5)
    redis.ask("DEBUG", "SLEEP", "0.4")
    load.done()

    explained = forktail("explain", "--slow", "100ms", load.log_path, "--all")
    assert explained.status == 0, explained.err
    assert "Redis' slow log lists DEBUG SLEEP 0.4" in explained.out
    # It is not reported for unrelated requests.
    episodes = explain(load.log_path, "--slow", "100ms")["episodes"]
    sentences = [s for s in evidence(*episodes).splitlines() if "DEBUG SLEEP" in s]
    assert 1 <= len(sentences) <= len(episodes)


def test_a_server_that_was_away_is_named_with_the_requests_that_waited_for_it(serve, start_load):
    mortal, other = (serve("redis", tcp=True) for _ in range(2))
    where = ["--server", mortal.address(), "--server", other.address()]
    load = start_load(*where, "-r", 1000, "--rate", 1000, "--duration", 4, "--retry", "1s", observer=True)
    load.under_way()
    mortal.close()
    load.wait()
    explained = forktail("explain", "--slow", "500ms", load.log_path, "--all")
    assert explained.status == 0, explained.err
    assert f"the keys of {mortal.address()} had no server for" in explained.out
