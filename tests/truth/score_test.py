# SPDX-License-Identifier: MIT
"""The suite's own scoring: what a first line is called, how requests' time is divided against their thread's, and how any
tool's words are judged in the public set."""
import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest
import unittest.mock

import first_lines
import judge as words_judge
import public
import score
import tools
from expected import FACTS, ROWS, Fact
from first_lines import NONE, PART, RIGHT, WRONG, judge
from registry import in_order
from trial import wait_for

import truth  # noqa: F401 (imports all cases)


def cause(*names, sure=True):
    return {"kind": "cause", "causes": list(names), "sure": sure}


def kind(name):
    return {"kind": name, "causes": [], "sure": True}


WAITS = Fact("case", right=("peer-wait",), says=r"127\.0\.0\.77", innocent=("network",), unsaid="outside the server's host")


class Judgement(unittest.TestCase):
    def test_the_injected_cause_is_right(self):
        self.assertEqual(judge(WAITS, "waited in poll() for 127.0.0.77:53", cause("peer-wait")), RIGHT)

    def test_of_a_family_any_member_is_right(self):
        self.assertEqual(judge(Fact("case", right=("softirq",)), "Soft interrupts", cause("softirq/net_rx")), RIGHT)

    def test_the_cause_without_what_the_line_must_have_is_part_of_the_answer(self):
        self.assertEqual(judge(WAITS, "waited in poll()", cause("peer-wait")), PART)

    def test_another_cause_in_the_same_place_is_part_of_the_answer(self):
        self.assertEqual(judge(WAITS, "ran its own code", cause("server-busy")), PART)

    def test_an_innocent_cause_is_a_wrong_name_wherever_it_stands(self):
        for named in (("network",), ("peer-wait", "network")):
            self.assertEqual(judge(WAITS, "127.0.0.77", cause(*named)), WRONG)

    def test_an_innocent_cause_in_words_is_a_wrong_name_whatever_the_verdict(self):
        for verdict in (cause("peer-wait"), kind("unattributed")):
            self.assertEqual(judge(WAITS, "Requests were outside the server's host", verdict), WRONG)

    def test_a_cause_of_another_place_is_a_wrong_name(self):
        self.assertEqual(judge(Fact("case", right=("fork",)), "The load generator was late", cause("client-late")), WRONG)
        self.assertEqual(judge(Fact("case", right=("client-late",)), "fork() took 3 ms", cause("fork")), WRONG)

    def test_a_cause_that_was_there_by_another_account_is_no_wrong_name(self):
        line = "The load generator waited 80 ms for a CPU"
        for fact in (Fact("case", right=("held",)), Fact("case", right=("held",), innocent=("client-late",))):
            self.assertEqual(judge(fact, line, cause("client-late")), WRONG)
            self.assertEqual(judge(fact, line, cause("client-late"), excused=["client-late"]), PART)

    def test_a_doubt_is_no_name(self):
        self.assertEqual(judge(WAITS, "network, or the server held the request", cause("network", sure=False)), NONE)

    def test_the_right_cause_with_a_doubt_is_right(self):
        self.assertEqual(judge(Fact("case", right=("network",)), "network, or", cause("network", sure=False)), RIGHT)

    def test_unattributed_is_no_name(self):
        self.assertEqual(judge(WAITS, "62 % has no recorded cause", kind("unattributed")), NONE)

    def test_nothing_to_explain_is_no_name(self):
        self.assertEqual(judge(WAITS, "", first_lines.UNKNOWN["verdict"]), NONE)

    def test_of_an_overload_any_cause_is_a_wrong_name(self):
        fact = Fact("case", right=("overload",), says="due")
        self.assertEqual(judge(fact, "400,000/s were due", kind("overload")), RIGHT)
        self.assertEqual(judge(fact, "EVAL took 3 s", cause("server-busy")), WRONG)
        self.assertEqual(judge(fact, "50 % has no recorded cause", kind("unattributed")), NONE)

    def test_an_overload_or_an_end_that_was_not_is_a_wrong_name(self):
        for name in ("overload", "outage"):
            self.assertEqual(judge(WAITS, "", kind(name)), WRONG)
            self.assertEqual(judge(Fact("case", right=(name,), says="SIGKILL"), "exited", kind(name)), PART)

    def test_another_cgroup_than_the_full_one_is_a_wrong_name(self):
        for name, expected in (("/forktail-truth-1", RIGHT), ("/other", WRONG)):
            self.assertEqual(judge(FACTS["oom"], f"killed by the OOM killer in cgroup {name}: 20", kind("outage")), expected)

    def test_what_was_printed_before_is_a_wrong_name_or_none(self):
        named = {"softirq": "Soft interrupts", "client-late": "load generator", "network": "outside the server's host",
                 "run-queue": "held CPU"}
        checked = 0
        for fact in ROWS:
            self.assertTrue(fact.says or not fact.before or fact.case.startswith(("nutcracker", "rank")), fact.case)
            for name, words in named.items():
                if words in fact.before and not fact.case.startswith("rank-"):
                    checked += 1
                    self.assertEqual(judge(fact, fact.before, cause(name)), WRONG, fact.case)
        self.assertGreater(checked, 6)


def line(fact, answer, verdict, **more):
    return first_lines.Line(fact, "20 ms", {"answer": answer, "verdict": verdict}, **more)


def gate(status, stdout=""):
    return subprocess.CompletedProcess([], status, stdout)


class Lines(unittest.TestCase):
    def test_a_wrong_name_and_a_gate_that_passes_are_amiss(self):
        outage = Fact("case", right=("outage",), gate="errors < 0.1%")
        self.assertEqual(line(outage, "killed", kind("outage"), gate=gate(1)).amiss, [])
        self.assertEqual(len(line(outage, "killed", kind("outage"), gate=gate(0)).amiss), 1)
        self.assertEqual(len(line(outage, "was late", cause("client-late"), gate=gate(0)).amiss), 2)

    def test_a_gate_that_names_another_cause_is_amiss(self):
        fork = Fact("case", right=("fork",), gate="p99.9 < 1us", ranked=True)
        for named, amiss in (("fork", 0), ("run-queue", 1)):
            failed = gate(1, f"FAIL p99.9 is 24.58 ms, over 1 us: without {named} it would be 7.96 ms")
            self.assertEqual(len(line(fork, "fork() took", cause("fork", "run-queue"), gate=failed).amiss), amiss)

    def test_what_a_fact_says_must_be_there(self):
        self.assertEqual(line(Fact("case", right=("peer-wait",)), "no cause", kind("unattributed")).amiss, [])
        self.assertEqual(len(line(WAITS, "no cause", kind("unattributed")).amiss), 1)

    def test_facts_are_of_cases(self):
        names = {case.name for case in in_order()} | {run for case in in_order() for run in case.runs}
        self.assertEqual(set(FACTS) - names, set())
        self.assertEqual(len(ROWS), len(FACTS))

    def test_each_place_is_innocent_once(self):
        self.assertLessEqual({"network", "client", "server", "proxy"}, {fact.negative for fact in ROWS})


def request(due_ns, **parts):
    return {"start_ns": due_ns, "parts": [{"cause": name.replace("_", "-"), "direct_ns": ns, "queued_ns": 0} for name, ns in parts.items()]}


class Division(unittest.TestCase):
    def explained(self, **parts):
        return {"slow_requests": [request(5, **parts)], "episodes": [{"causes": [
            {"cause": "server-busy", "thread_ns": 41}, {"cause": "page-zero", "thread_ns": 59}, {"cause": "fork", "thread_ns": 0}]}]}

    def test_requests_that_see_what_the_thread_did_are_divided_rightly(self):
        self.assertLess(score.division_error(self.explained(server_busy=400, page_zero=600)), 0.02)

    def test_own_time_charged_to_faults_is_an_error(self):
        self.assertGreater(score.division_error(self.explained(server_busy=151, page_zero=788)), 0.2)

    def test_time_outside_the_server_is_not_compared(self):
        self.assertLess(score.division_error(self.explained(server_busy=41, page_zero=59, client_late=500)), 0.01)


class SlowLog(unittest.TestCase):
    def test_an_entry_longer_than_its_episode_is_reported(self):
        text = "Redis' slow log lists LCS with 368 ms"
        short, long = ({"duration_ns": ms * 1_000_000, "evidence": [text]} for ms in (57.5, 370))
        self.assertEqual(len(score.too_long({"episodes": [short, long]})), 1)
        self.assertIn("LCS", score.too_long({"episodes": [short]})[0])


DOCTOR = """1. command: 1 latency spikes (average 200ms, mean deviation 0ms, period 2.00 sec). Worst all time event 200ms.
- Check your Slow Log to understand what are the commands you are running which are too slow to execute."""
SAID = (  # of a case of the public set, by any tool, and what it is
    ("name-resolution", "redis-server waited 589 ms in poll() for an answer from 127.0.0.77:53 (udp)", "right"),
    ("name-resolution", "1) REPLICAOF 2) primary.example. 3) 200853", "partly"),
    ("name-resolution", "Requests or replies were outside the server's host for 99.9 %", "wrong"),
    ("client-pause", "The server had read requests and held them (it counted 3 calls of CLIENT PAUSE)", "right"),
    ("client-pause", DOCTOR, "wrong"),
    ("nagle", "the second piece of the proxy's answer waited for a delayed ACK (TCP_NODELAY is off)", "right"),
    ("killed", "redis-server (26929) exited 1.88 s after the first request, killed by SIGKILL", "right"),
    ("killed", "The load generator waited 3.12 ms for a CPU", "wrong"),
    ("log-pipe", "redis-server was blocked in write() for 3.89 s", "partly"),
    ("log-pipe", "ksys_write+186\n  anon_pipe_write+818\n]: 307579", "right"),
    ("log-pipe", "Dave, no latency spike was observed", "nothing"),
    ("nodes-conf", "@usecs[redis-server, tracepoint:syscalls:sys_exit_fsync]:", "partly"),
    ("nodes-conf", "fsync() of nodes.conf by redis-server took 819 ms", "right"),
    ("nodes-conf", "fsync() of appendonly.aof took 819 ms", "wrong"),
    ("fork", "fork: 1 latency spikes. Fork rate is 2.56 GB/sec (terrible).", "partly"),
    ("fork", "fork() for BGSAVE took 43.7 ms, and the disk is slow", "partly"),
    ("swap-in", "do_swap_page+12", "right"),
    ("chroot", "Code outside any known file took 1.43 s of CPU", "wrong"),
    # Near misses: the cause or its object is missing.
    ("name-resolution", "peer-wait: 99 % of the slow requests' time, for 127.0.0.77", "partly"),
    ("client-pause", "The server had read requests and held them", "partly"),
    ("nagle", "python3 (4711) waited for a delayed ACK on 127.0.0.1:7001", "partly"),
    ("overload", "The backlog grew: 282,225/s were answered", "partly"),
    ("killed", "redis-server (26929) exited 1.88 s after the first request", "partly"),
    ("chroot", "Code of redis-server took 1.43 s of CPU", "nothing"),
    ("log-pipe", "The FIFO log was full", "partly"),
    ("nodes-conf", "nodes.conf was written 12 times", "partly"),
    ("resync", "Emptying the data set took 147 ms of CPU (server-busy)", "partly"),
    ("publish", "PUBLISH took 10.2 ms of CPU (server-busy)", "partly"),
    ("multiget", "One request took 48.7 ms of CPU (server-busy)", "partly"),
    ("low-rate", "The client was idle for 40 % of the run", "partly"),
    ("copy-on-write-thp", "Page faults took 98 ms (cow-copy)", "partly"),
    ("fork", "The snapshot took 14.6 ms", "partly"),
    ("write-behind-fsync", "redis-server waited 611 ms in write()", "partly"),
    ("swap-in", "57 pages read back from a file took 297 ms (page-in)", "partly"),
)


class PublicSet(unittest.TestCase):
    def test_words_are_judged_by_what_is_found(self):
        for case, text, verdict in SAID:
            self.assertEqual(words_judge.judge(public.BY_CASE[case].words(), text)[0], verdict, (case, text))
        self.assertEqual({case for case, _, verdict in SAID if verdict != "right"}, set(public.BY_CASE))

    def test_what_was_false_once_is_not_right(self):
        before = [fact for fact in ROWS if fact.before and fact.case in public.BY_CASE]
        self.assertGreater(len(before), 6)
        for fact in before:
            self.assertNotEqual(words_judge.judge(public.BY_CASE[fact.case].words(), fact.before)[0], "right", fact.case)

    def test_rows_are_of_cases(self):
        self.assertLessEqual(set(public.BY_CASE), {case.name for case in in_order()})
        self.assertEqual(len(public.ROWS), len(public.BY_CASE))

    def test_what_a_busy_machine_really_had_is_not_wrong(self):
        for excused, verdict in (((), "wrong"), (("run-queue",), "nothing")):
            words = public.BY_CASE["log-pipe"].words(excused)
            self.assertEqual(words_judge.judge(words, "cc1plus held CPU 0 for 244 ms")[0], verdict)

    def test_a_file_is_judged_by_the_truth_beside_it(self):
        happened = {"start_ns": 5_000_000_000, "end_ns": 6_000_000_000, "stall_ns": 819_000_000}
        truth = public.truth(public.BY_CASE["nodes-conf"], happened)
        self.assertLessEqual({"cause": "fsync() in the main thread", "object": "nodes.conf", "begin_ns": 5_000_000_000, "end_ns": 6_000_000_000,
                              "amount_ns": 819_000_000, "report": "redis#6753"}.items(), truth.items())
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "tool.txt")
            with open(path, "w") as f:
                f.write("fsync() of nodes.conf")
            self.assertEqual(self.judged(path), (2, ""))  # no truth there
            with open(os.path.join(directory, "truth.json"), "w") as f:
                json.dump(truth, f)
            status, said = self.judged(path)
            self.assertEqual(status, 0)
            self.assertIn("right", said)
            with open(path, "w") as f:
                f.write("the network is slow")
            self.assertEqual(self.judged(path)[0], 1)

    def judged(self, path):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            return words_judge.main([path]), output.getvalue()


class Beside(unittest.TestCase):
    def test_a_tool_runs_until_its_end_and_is_asked_afterwards(self):
        with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.object(tools, "HEAD_S", 0):
            tool, = tools.as_tools(["mine=trap 'echo ended; exit' INT; echo $CASE; while :; do sleep 0.01; done"], ["mine=echo asked"])
            running = tools.Running([tool], directory, {"CASE": "fork"})
            running.start()
            wait_for("its first word", lambda: os.path.getsize(running.path(tool)))
            running.stop()
            with open(running.path(tool)) as f:
                self.assertEqual(f.read().split(), ["fork", "ended", "asked"])

    def test_a_tool_needs_a_name_and_a_command(self):
        for word in ("strace -p 1", "=ls", "a/b=ls", "a="):
            with self.assertRaisesRegex(ValueError, "NAME=COMMAND"):
                tools.as_tools([word], [])


if __name__ == "__main__":
    unittest.main()
