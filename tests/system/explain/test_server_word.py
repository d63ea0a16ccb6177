# SPDX-License-Identifier: MIT
"""Without a recorder on the server's host, forktail explain uses the server's own reports: the load generator's
observer logs the slow log and forks, and explain shows them with their episode.
"""

import time

from harness import BIN, Recording, eventually, evidence, explain, forktail


def test_a_slow_command_known_only_to_the_server_is_named_with_its_episode(serve, background, tmp_path):
    redis = serve("redis", "--slowlog-log-slower-than", "10000", "--enable-debug-command", "yes")
    log = tmp_path / "load.forktail"
    load = background(BIN / "forktail-load", "-s", redis.socket, "--rate", 1000, "--duration", 4, "-o", log)
    time.sleep(1.5)
    redis.ask("DEBUG", "SLEEP", "0.4")
    assert load.wait(30).status == 0

    explained = forktail("explain", "--slow", "100ms", log, "--all")
    assert explained.status == 0, explained.err
    assert "Redis' slow log lists DEBUG SLEEP 0.4" in explained.out
    # It is not reported for unrelated requests.
    episodes = explain(log, "--slow", "100ms")["episodes"]
    sentences = [s for s in evidence(*episodes).splitlines() if "DEBUG SLEEP" in s]
    assert 1 <= len(sentences) <= len(episodes)


def test_a_server_that_was_away_is_named_with_the_requests_that_waited_for_it(serve, background, tmp_path):
    mortal, other = (serve("redis", tcp=True) for _ in range(2))
    log = tmp_path / "load.forktail"
    words = ["-r", 1000, "--rate", 1000, "--duration", 4, "--retry", "1s", "-q", "-o", log]
    load = background(BIN / "forktail-load", "--server", mortal.address(), "--server", other.address(), *words)
    assert eventually(lambda: log.exists() and len(Recording(log).requests) > 10, 30)
    mortal.close()
    load.wait()
    explained = forktail("explain", "--slow", "500ms", log, "--all")
    assert explained.status == 0, explained.err
    assert f"the keys of {mortal.address()} had no server for" in explained.out
