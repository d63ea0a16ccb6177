# SPDX-License-Identifier: MIT
"""Another process writes to the disk that a server waits for: it is named."""

import re
import signal
import time

import pytest

from disks import on_a_disk
from harness import evidence, explain, needs, needs_root

pytestmark = [needs_root, needs("redis-benchmark")]


def test_a_process_that_writes_to_the_servers_disk_is_named_with_the_amount_written(
    serve, record, background, tmp_path
):
    redis = serve("redis", "--appendonly", "yes", "--appendfsync", "always")
    if not on_a_disk(redis.directory) or not on_a_disk(tmp_path):
        pytest.skip("temporary directories are not on a disk here")
    recorder = record("--pid", redis.pid)
    write = f"while :; do dd if=/dev/zero of={tmp_path / 'other'} bs=1M count=100 conv=fsync; done"
    writer = background("sh", "-c", write)
    load = background("redis-benchmark", "-s", redis.socket, "-n", 100_000_000, "-t", "set", "-q")
    time.sleep(3)
    writer.signal(signal.SIGKILL)
    load.close()
    writes = recorder.stop().writes
    assert (writes.start_ns <= writes.end_ns).all()
    assert writes.bytes[writes.comm == b"dd"].sum() >= 10 << 20

    sentences = evidence(*explain(recorder.path)["episodes"]).splitlines()
    named = re.compile(r"sync\(\) of appendonly\S*\.aof on the serving thread took .* files were written by dd \(")
    assert [s for s in sentences if named.search(s)], sentences
