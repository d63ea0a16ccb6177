# SPDX-License-Identifier: MIT
"""What the kernel programs of a recorder keep in their maps: processes to trace, and writes until they are reported.
Programs loaded as on older hosts are tested in programs_test.cc.
"""

import json
import os
from pathlib import Path

import pytest

from disks import on_a_disk
from forktail.programs import program
from harness import Recording, eventually, ft, needs, needs_root, run_program

pytestmark = needs_root


def bpftool(*words):
    return json.loads(run_program("bpftool", "-j", *words).out)


def maps_of_targets(recorder):
    """The ids of its maps of processes to trace."""
    texts = [file.read_text() for file in Path(f"/proc/{recorder.pid}/fdinfo").iterdir()]
    own = {int(text.split("map_id:")[1].split()[0]) for text in texts if "map_id:" in text}
    return [one for one in own if bpftool("map", "show", "id", one)["name"] == "targets"]


def keys(map_id):
    entries = bpftool("map", "dump", "id", map_id)
    return [int.from_bytes((int(byte, 16) for byte in one["key"]), "little") for one in entries]


@needs("bpftool")
def test_a_load_generator_that_ran_at_the_begin_has_accounts_and_its_process_id_is_forgotten(redis, record, background):
    load = background(program("forktail-load"), "-s", redis.socket, "--rate", 100, "--duration", 60)
    info = redis.instance.connection().read_info
    assert eventually(lambda: info()["connected_clients"] != "1", 30)
    recorder = record("--pid", redis.pid)
    (targets,) = maps_of_targets(recorder)
    assert keys(targets) == [redis.pid]
    threads = recorder.stop().threads.values()
    assert any(t.tgid == load.pid and t.flags & ft.THREAD_CLIENT for t in threads)


def test_what_a_process_wrote_last_is_reported_without_another_write(record, tmp_path):
    if not on_a_disk(tmp_path):
        pytest.skip("temporary directories are not on a disk here")

    def written(r):
        return r.writes[r.writes.tgid == os.getpid()]

    recorder = record("--pid", os.getpid())
    text = b"x" * (300 << 10)  # less than what becomes an event at once
    (tmp_path / "some").write_bytes(text)

    def reported():  # and the file system's own pages
        return int(written(Recording(recorder.path)).bytes.sum()) >= len(text)

    assert eventually(reported)
    writes = written(recorder.stop())
    assert writes.bytes.sum() < 2 * len(text)  # each page once
    assert set(writes.comm) == {Path("/proc/self/comm").read_bytes().rstrip(b"\n")}
