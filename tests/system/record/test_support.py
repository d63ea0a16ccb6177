# SPDX-License-Identifier: MIT
"""What a host supports: doctor prints the same list that the recorder uses, on this host and on hosts that lack
something. Those are made of this one in a mount namespace, where other files are in the place of the kernel's.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from forktail.programs import program
from harness import AS_NOBODY, TREE, Recording, needs_root, run_program

pytestmark = needs_root

BTF = Path("/sys/kernel/btf/vmlinux")
CLOCK_EVENT = Path("/sys/devices/system/clockevents/clockevent0/current_device")
TRACEFS = [Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing")]


class Feature(NamedTuple):
    name: str
    available: bool
    extra: bool = False  # most hosts lack it
    why: str = ""
    required: bool = False
    without: str = ""


class Doctor:
    """What forktail-record --doctor prints after some words. The exit status and the last line summarize the list."""

    FEATURE = re.compile(r"  (yes|no|NO) +([^:\n]+)(?:: (.+)\n {7}without it( nothing can be recorded)?: (.+))?\n")

    def __init__(self, *by):
        ended = run_program(*by, program("forktail-record"), "--doctor")
        self.out = ended.out
        head, features, self.abilities, self.summary = self.out.split("\n\n")
        self.kernel, self.cpus = re.fullmatch(r"kernel (.+), (\d+) CPUs", head).groups()
        found = list(self.FEATURE.finditer(features + "\n"))
        assert "".join(one[0] for one in found) == features + "\n"
        self.features = [
            Feature(name, is_there == "yes", is_there == "no", why or "", bool(required), without or "")
            for is_there, name, why, required, without in (one.groups() for one in found)
        ]
        self.missing = [one for one in self.features if not one.available and not one.extra]
        blocker = next((one for one in self.features if one.required), None)
        if blocker:
            summary, status = f"cannot make a recording: {blocker.why}", 3
        elif self.missing:
            plural = "s" if len(self.missing) > 1 else ""
            summary, status = f"can make a recording that lacks {len(self.missing)} thing{plural}", 1
        else:
            summary, status = "can make a full recording", 0
        assert (self.summary, ended.status) == (f"This host {summary}.\n", status)

    def ability(self, name):
        """What follows a name in the second list."""
        return re.search(rf"^{re.escape(name)}: (.*)$", self.abilities, re.MULTILINE)[1]


@pytest.fixture
def host(tmp_path):
    """host(...): the words before a command that is to run on another host.

    lacks: names that are not in its kernel's BTF. empty: directories without files. files: contents by path.
    """

    def words(lacks=(), empty=(), files=()):
        files = dict(files)
        if lacks:
            btf = BTF.read_bytes()
            for name in (b"\0%s\0" % name.encode() for name in lacks):
                btf = btf.replace(name, name[:-2] + b"?\0")
            files[BTF] = btf
        mounts = [f"mount -t tmpfs none {path}" for path in empty if path.is_dir()]
        for i, (path, content) in enumerate(files.items()):
            (tmp_path / f"file{i}").write_bytes(content)
            mounts.append(f"mount --bind {tmp_path}/file{i} {path}")
        return ["unshare", "--mount", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]

    return words


def in_btf(name):
    return b"\0%s\0" % name.encode() in BTF.read_bytes()


def test_every_feature_is_listed_once_and_available_if_this_host_has_it():
    doctor = Doctor()
    assert doctor.kernel == os.uname().release
    assert int(doctor.cpus) >= os.sysconf("SC_NPROCESSORS_ONLN")
    available = {one.name: one.available for one in doctor.features}
    assert len(available) == len(doctor.features)
    room = re.search(r"SUPPORT_FEATURES = (\d+)", (TREE / "loader/system/include/loader/attach.h").read_text())[1]
    assert len(available) < int(room)  # none was omitted for lack of room
    assert available["root"]
    assert available["kernel BTF"] == BTF.exists()
    assert available["timer interrupts"] == ("Hyper-V" not in CLOCK_EVENT.read_text())
    tracepoints = {name: has for name, has in available.items() if re.fullmatch("[a-z]+_[a-z_]+", name)}
    assert tracepoints.keys() >= {"sched_switch", "sched_wakeup", "softirq_entry", "block_rq_issue"}
    tracepoints.pop("writeback_dirty_folio")  # or writeback_dirty_page
    assert tracepoints == {name: in_btf(f"btf_trace_{name}") for name in tracepoints}


def test_every_feature_that_is_missing_has_a_reason_and_an_effect(host):
    # As the user nobody, without BTF, tracefs and a timer that can be traced, a host lacks nearly everything. That
    # each has a reason and an effect is how Doctor reads the list.
    nothing = host(empty=[BTF.parent, *TRACEFS], files={CLOCK_EVENT: b"Hyper-V clockevent\n"})
    doctor = Doctor(*nothing, *AS_NOBODY)
    assert [one.name for one in doctor.features] == [one.name for one in Doctor().features]
    available = {one.name for one in doctor.features if one.available}
    assert available <= {os.uname().machine, "up to 1024 CPUs", "perf page-fault events", "perf CPU clock"}
    # The first required one that is missing blocks a recording.
    assert doctor.summary == "This host cannot make a recording: running as user 65534. Run with sudo.\n"
    required = [one.name for one in doctor.features if one.required]
    assert required[:3] == ["root", "kernel BTF", "loading BPF programs"]


@pytest.mark.parametrize(
    ("tracepoint", "required"), [("sched_switch", True), ("sched_process_exit", True), ("softirq_entry", False)]
)
def test_a_tracepoint_that_the_kernel_lacks_is_missing(host, tracepoint, required):
    doctor = Doctor(*host(lacks=[f"btf_trace_{tracepoint}"]))
    before = {one.name for one in Doctor().missing}
    assert {one.name: one.required for one in doctor.missing if one.name not in before} == {tracepoint: required}


@pytest.mark.parametrize(
    ("timer", "seen"), [("lapic", True), ("lapic-deadline", True), ("hpet", True), ("Hyper-V clockevent", False)]
)
def test_hyper_vs_timer_cannot_be_traced_whatever_tracepoints_exist(host, timer, seen):
    doctor = Doctor(*host(files={CLOCK_EVENT: f"{timer}\n".encode()}))
    (feature,) = (one for one in doctor.features if one.name == "timer interrupts")
    assert feature.available == seen


TOO_OLD = "BPF_FUNC_task_pt_regs"
NO_FUNCTIONS = "BPF_FUNC_for_each_map_elem"
NO_TRACEPOINTS = "no, this kernel has no tracepoints sk_data_ready and sock_recv_length (Linux 6.3 has them), and "


@pytest.fixture(scope="module")
def functions():
    """Whether this kernel allows tracing of functions."""
    return Doctor().ability("system calls can be traced (--exact)") == "by fentry"


@pytest.mark.skipif(not in_btf("btf_trace_sk_data_ready"), reason="this kernel has no tracepoint sk_data_ready")
@pytest.mark.parametrize(
    ("lacks", "requests"),
    [
        ([], "yes"),
        (["btf_trace_sk_data_ready"], "yes, by fentry"),
        (["btf_trace_sock_recv_length"], "yes, by fentry"),
        (["btf_trace_sk_data_ready", TOO_OLD], NO_TRACEPOINTS + "is too old to trace functions in their place"),
        (["btf_trace_sk_data_ready", NO_FUNCTIONS], NO_TRACEPOINTS + "does not allow tracing of functions"),
        ([NO_FUNCTIONS], "yes"),
    ],
    ids=["all", "no-sk_data_ready", "no-sock_recv_length", "older", "no-functions-either", "no-functions"],
)
def test_requests_are_seen_at_functions_only_if_their_tracepoints_are_missing(
    host, functions, redis, tmp_path, lacks, requests
):
    if requests.endswith("fentry") and not functions:
        requests = NO_TRACEPOINTS + "does not allow tracing of functions"
    by = host(lacks)
    ability = Doctor(*by).ability("requests of clients can be recorded (--requests)")
    if requests.startswith("yes"):
        assert ability == requests
    else:
        assert ability.startswith(requests)
        words = ["--pid", redis.pid, "--requests", "-o", tmp_path / "r"]
        ended = run_program(*by, program("forktail-record"), *words)
        assert ended.status == 3
        assert ended.err == f"forktail record: --requests: {ability.removeprefix('no, ')}\n"


@pytest.mark.parametrize("empty", [[], TRACEFS], ids=["tracefs", "no-tracefs"])
@pytest.mark.parametrize("lacks", [[], [NO_FUNCTIONS]], ids=["functions", "no-functions"])
def test_system_calls_are_traced_by_functions_if_possible_else_by_tracepoints_else_not(
    host, functions, redis, tmp_path, lacks, empty
):
    by = host(lacks, empty)
    mounted = not empty and any((path / "events/syscalls/sys_enter_epoll_pwait").exists() for path in TRACEFS)
    fentry = "fentry" if functions and not lacks else "this kernel does not allow tracing of functions: "
    tracepoints = "tracepoints" if mounted else "no tracepoints of system calls. Mount tracefs"
    either = fentry if fentry == "fentry" else tracepoints

    ability = Doctor(*by).ability("system calls can be traced (--exact)")
    assert ability.startswith(f"by {either}" if " " not in either else f"no, {either}")
    for option, traced in {
        "": "",
        "--exact": either,
        "--exact=fentry": fentry,
        "--exact=tracepoints": tracepoints,
    }.items():
        words = ["--pid", redis.pid, "--duration", "200ms", *option.split(), "-o", tmp_path / "r"]
        ended = run_program(*by, program("forktail-record"), *words)
        if " " in traced:
            assert ended.status == 3
            assert ended.err.startswith(f"forktail record: --exact: {traced}")
        else:
            assert ended.status == 0, ended.err
            assert Recording(tmp_path / "r").manifest["exact_by"] == traced


def test_a_recording_says_what_doctor_says_that_it_lacks(host, redis, tmp_path):
    by = host(["btf_trace_softirq_entry"], files={Path("/proc/kallsyms"): b""})
    doctor = Doctor(*by)
    assert {"softirq_entry", "kernel symbols"} <= {one.name for one in doctor.missing}
    words = ["--pid", redis.pid, "--duration", "200ms", "-o", tmp_path / "r"]
    ended = run_program(*by, program("forktail-record"), *words)
    assert ended.status == 0, ended.err
    missing = [(one["what"], one["why"]) for one in Recording(tmp_path / "r").manifest["missing"]]
    assert missing == [(one.without, one.why) for one in doctor.missing]


@pytest.mark.parametrize("by", [AS_NOBODY, []], ids=["nobody", "without-sched_switch"])
def test_what_blocks_a_recording_is_the_recorders_reason_as_well(host, redis, tmp_path, by):
    by = by or host(["btf_trace_sched_switch"])
    doctor = Doctor(*by)
    ended = run_program(*by, program("forktail-record"), "--pid", redis.pid, "-o", tmp_path / "r")
    assert ended.status == 3
    if by == AS_NOBODY:  # the first thing that a user meets has a sentence of its own
        assert ended.err == (
            "forktail record: cannot record as user 65534, because BPF programs need root. Run with sudo\n"
        )
        return
    reason = doctor.summary.removeprefix("This host ").removesuffix(".\n")
    assert ended.err == f"forktail record: this host {reason}\n"
