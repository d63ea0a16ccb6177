# SPDX-License-Identifier: MIT
"""Functions and static probes of programs that a user names: each hit in a target is a mark of the recording, with its
time in the function. What cannot be attached is refused in one sentence.
"""

import re
import subprocess
import time
from pathlib import Path

import pytest

from harness import explain, forktail, ft, needs_root

pytestmark = needs_root

PROGRAM = """
#include <setjmp.h>
#include <sys/sdt.h>
#include <unistd.h>
int depth(int n) { usleep(1000); return n ? depth(n - 1) : 0; }
int (*volatile call)(int) = depth;
jmp_buf out;
void jumps(void) { longjmp(out, 1); }
void (*volatile jump)(void) = jumps;
int main(void)
{
	usleep(500000);
	for (int i = 0; i < 100; i++)
		DTRACE_PROBE1(demo, reached, i);
	for (int i = 0; i < 3; i++) {
		if (!setjmp(out))
			jump();
		call(i == 1 ? 100 : 4);
		usleep(100000);
	}
	sleep(60);
}
"""


@pytest.fixture
def program(tmp_path):
    """The path of a program with static probes and a function that calls itself."""
    if not Path("/usr/include/sys/sdt.h").exists():
        pytest.skip("no <sys/sdt.h> (Debian: systemtap-sdt-dev)")
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O0", "-o", tmp_path / "program", tmp_path / "program.c"], check=True)
    return tmp_path / "program"


def hits(kernel):
    return [note for note in kernel.notes if note.get("kind") == "probe"]


def test_a_function_of_the_target_is_marked_with_the_time_that_it_took(serve, record):
    redis, other = serve("redis", "--save", ""), serve("redis", "--save", "")
    recorder = record("--pid", redis.pid, "--probe", "uprobe::rdbSaveBackground")
    wall_ns = []
    for server in (redis, other, redis):
        begin_ns = time.monotonic_ns()
        server.ask("BGSAVE")
        wall_ns.append(time.monotonic_ns() - begin_ns)
        time.sleep(0.3)
    kernel = recorder.stop()
    first, second = hits(kernel)
    assert all(hit["pid"] == redis.pid and hit["name"] == "rdbSaveBackground" for hit in (first, second))
    assert 0 < first["duration_ns"] < wall_ns[0]
    assert 0 < second["duration_ns"] < wall_ns[2]
    spans = kernel.spans
    forks = spans[(spans.owner == ft.FORK) & (spans.off_cpu == 0)].duration_ns
    assert len(forks) == 2
    assert first["duration_ns"] > forks[0]  # which is in it
    texts = [mark["text"] for mark in explain(recorder.path)["marks"]]
    assert len(texts) == 2
    assert re.fullmatch(rf"rdbSaveBackground\(\) of process {redis.pid} took [\d.]+ [um]s", texts[0])


def test_static_probes_are_cut_to_a_number_per_time_and_a_recursive_function_counts_once(program, record):
    process = subprocess.Popen([program])
    try:
        recorder = record("--pid", process.pid, "--probe", f"usdt:{program}:demo:reached", "--probe", "uprobe::depth")
        time.sleep(1.5)
        kernel = recorder.stop()
    finally:
        process.kill()
        process.wait()
    found = hits(kernel)
    static = [hit for hit in found if hit["name"] == "reached"]
    calls = [hit for hit in found if hit["name"] == "depth"]
    assert len(calls) == 3
    assert all(hit["duration_ns"] > 5_000_000 for hit in calls)  # of five calls of a millisecond
    assert len(static) == 2 and "duration_ns" not in static[0]
    (missing,) = [note for note in kernel.notes if note.get("kind") == "missing" and "hits" in note["what"]]
    assert missing["what"].startswith("98 hits of the probe usdt:")


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ("uprobe::noSuchFunction", "has no function noSuchFunction among its symbols"),
        ("uprobe:/no/such/file:main", "cannot read /no/such/file: No such file or directory"),
        ("uprobe:/etc/passwd:main", "/etc/passwd is no program or library"),
        ("usdt::demo:reached", "has no static probe reached"),
    ],
)
def test_a_probe_that_cannot_be_attached_is_refused_with_the_reason(serve, tmp_path, probe, why):
    redis = serve("redis")
    ended = forktail("record", "--pid", redis.pid, "--probe", probe, "-o", tmp_path / "r", "--duration", "1s")
    assert ended.status == 3
    assert ended.err.count("forktail record: ") == 1, ended.err
    assert f"forktail record: --probe {probe}: " in ended.err and why in ended.err
    assert "libbpf" not in ended.err
    assert not (tmp_path / "r").exists()  # an earlier recording would still be there
