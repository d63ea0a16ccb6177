# SPDX-License-Identifier: MIT
"""The suite's own scoring: what a first line is called, and how requests' time is divided against their thread's."""
import subprocess
import unittest

import first_lines
import score
from expected import FACTS, ROWS, Fact
from first_lines import NONE, PART, RIGHT, WRONG, judge
from registry import in_order

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


if __name__ == "__main__":
    unittest.main()
