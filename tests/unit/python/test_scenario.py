# SPDX-License-Identifier: MIT
"""Scenario files: every error is refused with its line and its reason. Templates, scales and points are computed as
documented in docs/reference/lab-and-scenarios.md. forktail's own scenarios can be printed at every scale.
"""
# ruff: noqa: E501 (messages are as long as they are)

import re
from pathlib import Path

import pytest

from forktail import toml
from forktail.failure import Failure
from forktail.lab import scenario as lab
from forktail.lab.charts import make_charts
from forktail.lab.format import Format
from forktail.lab.formula import names_in, with_row, with_values
from forktail.lab.results import Point, Results
from forktail.lab.scenario import (
    Column,
    Due,
    Scale,
    Scenario,
    Size,
    expand,
    expand_text,
    matches,
    parse_scenario,
    points_of,
)
from forktail.lab.tables import make_table, make_tables

# Its line numbers matter: an error is put into one of its lines.
GOOD = """title = "T"
about = "A"
scale = { tiny = 0.1 }
constants = { clients = 50 }
[sizes]
keys = { full = 1000, least = 200 }
[[sweep]]
name = "listen"
values = ["unix", "tcp"]
also.word = ["u", "t"]
[swap]
kind = "file"
size = "64MiB"
only = { listen = "tcp" }
[[server]]
name = "redis"
kind = "redis"
count = "2"
listen = "{listen}"
[[server]]
name = "proxy"
kind = "nutcracker"
of = "redis"
[[step]]
name = "fill"
to = "redis"
load = "--fill {keys}"
[[step]]
name = "run"
to = "proxy"
load = "-n {keys} --duration 2s"
[[step.event]]
at = "50%"
ask = "BGSAVE"
server = "redis1"
[[step.log]]
name = "said"
server = "redis"
text = "Background saving started"
[[step]]
wait = "10ms"
[[table]]
title = "Rates"
by = "listen"
[[table.column]]
title = "gain"
value = "run.rps / base.run.rps"
against = { listen = "unix" }
[[chart]]
title = "C"
x = "listen"
[[chart.series]]
title = "rps"
value = "run.rps"
"""

# A line, the text that replaces it, and the message.
# fmt: off
MISTAKES = [
    (1, "", "1: a scenario needs `title`"),
    (1, "title = true", "1: `title` must be a string or a number"),
    (1, 'title = "T"\ncolour = 1', "2: a scenario has no `colour`; it has about, chart, conclusion, constants, fit, line, network, print, question, report, scale, server, sizes, source, step, swap, sweep, table, title"),
    (1, 'title = "T"\nprint = "poems"', "1: `print` must be tables or explanation, not poems"),
    (1, 'title = "T"\nprint = "explanation"', "1: a scenario that prints an explanation must have one recorded step and no sweeps, tables or charts"),
    (1, 'title = "T"\nfit = "clients"', '1: `fit` must name a size: "clients" is not a size'),
    (3, "", "1: a scenario needs `scale`"),
    (3, "scale = 3", "3: `scale` must be a table"),
    (3, "scale = { tiny = 0 }", '1: the scale "tiny" must be a factor above 0'),
    (3, "scale = { tiny = -1 }", '1: the scale "tiny" must be a factor above 0'),
    (3, 'scale = { tiny = "0.1" }', "3: `tiny` must be a number"),
    (3, "scale = { tiny = inf }", "3: `tiny` must be a number"),
    (3, "scale = { 1st = 1 }", '1: the scale "1st" must be a factor above 0'),
    (4, 'constants = { clients = "{kees * 2}" }', '1: {kees * 2} cannot be evaluated: unknown name "kees"'),
    (4, "constants = { keys = 50 }", '1: "keys" is defined twice'),
    (4, "constants = { a-b = 50 }", '1: "a-b" is not a name: use letters, digits and _, starting with a letter'),
    (4, "constants = { clients = [50] }", "4: `clients` must be a string or a number"),
    (6, "keys = { full = 1000, small = 3 }", "6: a size has no `small`; it has full, least"),
    (6, "keys = { full = 1000, tiny = 0 }", "1: the size keys must be above 0"),
    (6, "keys = { least = 200 }", "6: a size needs `full`"),
    (6, "keys = { full = 0 }", "1: the size keys must be above 0"),
    (6, "keys = { full = 9_007_199_254_740_993 }", "6: `full` must be a number"),
    (6, "keys = 1000", "6: `keys` must be a table"),
    (8, "", "7: a sweep needs `name`"),
    (8, 'name = "keys"', '7: "keys" is defined twice'),
    (9, "", "7: a sweep needs `values`"),
    (9, "values = []", '7: the sweep "listen" has no values'),
    (9, 'values = ["unix", [1]]', "9: `values` must be a string or a list of strings"),
    (9, 'values = ["unix", "unix"]', '7: "listen" has the same value twice'),
    (10, 'also.word = ["u"]', "7: `also.word` needs a value for each of `values`"),
    (10, 'also.word = ["u", "{t"]', "7: a { has no closing }"),
    (10, 'also.word = ["u", "{keys*kees}"]', '7: {keys*kees} cannot be evaluated: unknown name "kees"'),
    (10, 'tiny = ["udp"]', '7: "udp" at scale tiny is none of the values of "listen"'),
    (10, "keep_servers = 1", "10: `keep_servers` must be true or false"),
    (10, 'keep_servers = true\n[[sweep]]\nname = "n"\nvalues = [1]', "11: sweeps with `keep_servers` must come last, because nothing else may change between their values"),
    (12, 'kind = "paper"', '11: unknown kind of swap "paper": use zram or file'),
    (13, "", "11: `swap` needs `size`"),
    (13, 'size = "64MB"', '11: "64MB" is not a size of swap such as 256MiB'),
    (14, 'only = { lisen = "tcp" }', '11: unknown sweep variable "lisen"'),
    (16, "", "15: a server needs `name`"),
    (16, 'name = "redis1"', '15: the name of a server must be a name that does not end with a digit, not "redis1"'),
    (16, 'name = "a.b"', '15: the name of a server must be a name that does not end with a digit, not "a.b"'),
    (16, 'name = "other"', '20: the server "redis" must come before "proxy"'),
    (17, 'kind = "mongo"', '15: unknown kind of server "mongo": use redis, redis8, valkey, keydb, memcached, nutcracker, haproxy and sentinel'),
    (18, "count = 0", "15: `count` must be 1 to 100, not 0"),
    (18, "count = 101", "15: `count` must be 1 to 100, not 101"),
    (18, 'count = "2x"', "15: `count` must be 1 to 100, not 2x"),
    (18, 'count = "{listen}"', "15: `count` must be 1 to 100, not unix"),
    (18, 'count = "99999999999"', "15: `count` must be 1 to 100, not 99999999999"),
    (18, 'memory = "lots"', '15: "lots" is not a size of memory such as 256MiB'),
    (18, 'memory = "{keys - 500}"', '15: "-300" is not a size of memory such as 256MiB'),
    (18, 'replicas = "one"', "15: `replicas` must be 0 to 100, not one"),
    (18, 'config = ["--maxmemory", "{kees}"]', '15: {kees} cannot be evaluated: unknown name "kees"'),
    (18, 'cluster = "yes"', "18: `cluster` must be true or false"),
    (18, 'only = { listen = "udp" }', '15: "listen" has no value "udp"'),
    (19, 'listen = "{word}"', "15: `listen` must be unix or tcp, not u"),
    (19, 'listen = "{listen"', "15: a { has no closing }"),
    (21, 'name = "redis"', '20: a point has two servers "redis"'),
    (23, "", "20: a nutcracker needs `of` with the servers behind it"),
    (23, 'of = "later"', '20: the server "later" must come before "proxy"'),
    (25, "", "24: a step needs `name`"),
    (25, 'name = "run"', '28: a point has two steps "run"'),
    (25, 'name = "1st"', '24: "1st" is not a name for figures'),
    (26, "", "24: `to` is missing: name the server for the load"),
    (23, 'of = "redis"\nonly = { listen = "tcp" }', '29: some points of the step have no server "proxy": restrict the step with `only`'),
    (26, 'to = "reddis"', '24: unknown server "reddis"'),
    (26, 'to = "redis"\nby = "wrk"', "24: `by` must be forktail-load or redis-benchmark, not wrk"),
    (26, 'to = "redis"\nby = "redis-benchmark"\nrecord = true', "24: `record` needs forktail-load, because redis-benchmark does not log requests"),
    (26, 'to = "redis"\nrecord = true\nrequests = "1/3"', '28: `requests` must be auto, or 1/N with a power of two up to 1024, such as 1/16, not "1/3"'),
    (26, 'to = "redis"\nrecord = true\nrequests = true', "28: `requests` must be a string or a number"),
    (26, 'to = "redis"\nrequests = "1/16"', "27: `requests` needs `record`"),
    (27, 'load = "--fill {keys"', "24: a { has no closing }"),
    (27, 'load = "--fill {keys/0}"', "24: {keys/0} is not a number"),
    (27, 'load = "--fill {}"', "24: {} cannot be evaluated: it is empty"),
    (27, 'load = "x"\nask = "BGSAVE"', "28: a step has no `ask`; it has by, client, cpus, errors, event, load, log, name, only, query, record, requests, say, slow, to"),
    (31, 'load = "-n {keys}"', "32: `at` with a share of the load needs a load with --duration"),
    (33, "", "32: an event needs `at`"),
    (33, 'at = "soon"', '32: `at` must be a share of the load such as 25% or a time such as 2s, not "soon"'),
    (33, 'at = "150%"', '32: `at` must be a share of the load such as 25% or a time such as 2s, not "150%"'),
    (33, 'at = "-1s"', '32: `at` must be a share of the load such as 25% or a time such as 2s, not "-1s"'),
    (33, 'at = "2"', '32: `at` must be a share of the load such as 25% or a time such as 2s, not "2"'),
    (34, 'ask = "BGSAVE"\nwait = "1s"', "32: a step needs exactly one of load, ask, start, kill, move_slots, await, spread, napi_threads, host, wait and note"),
    (34, "", "32: a step needs exactly one of load, ask, start, kill, move_slots, await, spread, napi_threads, host, wait and note"),
    (34, 'await = "christmas"', '32: unknown `await` "christmas": use snapshot, rewrite or replicas'),
    (34, "move_slots = 5", "32: `move_slots` needs `to` with the node that receives the slots"),
    (34, 'ask = "PING"\nreport = true', "32: `report` needs an event that sends BGSAVE or BGREWRITEAOF"),
    (27, 'load = "--fill {keys}"\nsay = "{kees:count}"', '24: {kees} cannot be evaluated: unknown name "kees"'),
    (35, "", "32: `server` is missing: name the server of this step"),
    (35, 'server = "reddis1"', '32: unknown server "reddis1"'),
    (37, 'name = "s.d"', '36: "s.d" is not a name for a figure'),
    (38, "", "36: a log needs `server`"),
    (38, 'server = "reddis"', '36: unknown server "reddis"'),
    (39, 'text = "t"\n[[step.query]]\nname = "q"\nsql = "select 1"', "40: a [[step.query]] asks the recording, but the step has no `record`"),
    (39, 'text = "t"\n[[step.query]]\nname = "q.r"\nsql = "select 1"', '40: "q.r" is not a name for a figure'),
    (39, 'text = "t"\n[[step.query]]\nname = "q"', "40: a query needs `sql`"),
    (41, "", "40: a step needs exactly one of load, ask, start, kill, move_slots, await, spread, napi_threads, host, wait and note"),
    (41, 'wait = "10%"', '40: `wait` must be a time such as 2s, not "10%"'),
    (41, 'spread = "maybe"', '40: `spread` must be "on", "off" or a list of CPUs such as 0-1, not "maybe"'),
    (41, 'spread = "{word}"', '40: `spread` must be "on", "off" or a list of CPUs such as 0-1, not "u"'),
    (41, 'host = "/etc/passwd x"', '40: `host` must be a file below /sys or /proc/sys and its value, not "/etc/passwd x"'),
    (41, 'host = "/proc/sys/../x 1"', '40: `host` must be a file below /sys or /proc/sys and its value, not "/proc/sys/../x 1"'),
    (41, 'host = "/proc/sys/vm/swappiness"', '40: `host` must be a file below /sys or /proc/sys and its value, not "/proc/sys/vm/swappiness"'),
    (41, 'napi_threads = "1"', "40: `napi_threads` needs a [network] with `napi = true`"),
    (41, 'note = "a.b"', '40: "a.b" is not a name for figures'),
    (41, 'dance = "on"', "41: a step has no `dance`; it has ask, await, host, kill, load, move_slots, napi_threads, note, only, report, say, server, spread, start, to, wait"),
    (14, 'only = { listen = "tcp" }\n[network]\nrate = "1mbit"', "15: `network` needs `servers`"),
    (14, 'only = { listen = "tcp" }\n[network]\nrate = "1mbit"\nservers = ["sea"]', '15: unknown server "sea"'),
    (14, 'only = { listen = "tcp" }\n[network]\nrate = "1mbit"\nservers = ["proxy"]', "15: a link needs servers of kind redis, valkey, keydb or memcached: proxy"),
    (14, 'only = { listen = "tcp" }\n[network]\nrate = "1mbit"\nservers = ["redis"]', '15: a link needs `listen = "tcp"`: redis'),
    (48, 'against = { listen = "unix" }\n[[conclusion]]\nsay = "S"\nvalue = "run.rps"\nagainst = { listen = "unix" }', '49: `value` must be a ratio to `base.`, such as "run.rps / base.run.rps", not "run.rps"'),
    (44, "", "42: a table needs `rows` (names) or `by` (variables)"),
    (44, 'by = "lisen"', '42: unknown sweep variable "lisen"'),
    (44, 'by = "listen"\nwhere = { listen = "udp" }', '42: "listen" has no value "udp"'),
    (46, "", "45: a column needs `title`"),
    (47, 'value = "walk.rps / base.run.rps"', '45: no step produces "walk.rps"'),
    (47, 'value = "clyents * 2"', '45: no step produces "clyents"'),
    (47, 'value = "base.walk.rps"', '45: no step produces "walk.rps"'),
    (47, 'value = "run.rps"\nformat = "furlongs"', '45: unknown format "furlongs": use one of bytes, count, decimals1, decimals2, ms, number, percent, s, text, us'),
    (47, 'value = "run.rps"\npublished = { unix = "many" }', "48: `unix` must be a number"),
    (48, "", '45: "base.run.rps" needs `against`'),
    (48, 'against = { listen = "udp" }', '45: "listen" has no value "udp"'),
    (51, "", "49: a chart needs `x`"),
    (51, 'x = "lisen"', '49: unknown sweep variable "lisen"'),
    (54, 'value = "walk.rps"', '52: no step produces "walk.rps"'),
]
# fmt: on


def with_line(number: int, line: str) -> str:
    lines = GOOD.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def refusal(text: str | bytes) -> str:
    """ "LINE: reason"."""
    with pytest.raises(Failure) as refused:
        parse_scenario(text, "a/s.toml")
    path, _, rest = str(refused.value).partition(":")
    assert path == "a/s.toml" and refused.value.status == 2
    return rest


def test_a_correct_scenario_is_read() -> None:
    scenario = parse_scenario(GOOD, "a/s.toml")
    assert scenario.name == "s"
    assert scenario.servers[0].count == "2"
    assert len(scenario.steps) == 3
    assert scenario.steps[1].events[0].at == "50%"
    assert scenario.steps[1].logs[0].text == "Background saving started"
    assert scenario.steps[2].action.wait == "10ms"
    assert scenario.tables[0].columns[0].against == {"listen": "unix"}
    assert scenario.swap.only == {"listen": ["tcp"]}


@pytest.mark.parametrize(("line", "by", "said"), MISTAKES)
def test_an_error_is_refused_with_its_line_and_its_reason(line: int, by: str, said: str) -> None:
    assert refusal(with_line(line, by)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (with_line(18, "count = "), "18: Invalid value"),
        (with_line(9, 'values = ["unix"'), "10: "),
        (with_line(16, 'name = "redis"\nname = "redis"'), "17: Cannot overwrite a value"),
        (b"a = 1\n\xff\xfe", "2: it is not UTF-8"),
        ("", "1: a scenario needs `title`"),
        ('title = "T"\nabout = "A"\nscale = {}\n', "1: a scenario needs a [[step]]"),
    ],
)
def test_invalid_toml_is_refused_with_its_line(text: str | bytes, said: str) -> None:
    assert refusal(text).startswith(said)


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(Failure, match=r"^cannot read the scenario /nonexistent\.toml$"):
        lab.read_scenario("/nonexistent.toml")


@pytest.mark.parametrize("formula", ["run.rps /", "(run.rps", "run.rps run.p99", "", "nosuch(run.rps)"])
def test_an_invalid_formula_is_refused(formula: str) -> None:
    assert refusal(with_line(47, f'value = "{formula}"')).startswith("45: ")


def test_values_of_every_kind_have_their_line() -> None:
    text = r'''a = 1 # [[no]]
"b c".d = """
x = 1
"""
list = [ # comment
  {x = "]", y = 2000-01-01 10:00:00},
  {x = """a "quoted" word\\"""},
]
[[t]]
[[t.u]]
[[t]]
[[t.u]]
[t.u.v]
e.f = [[1, 2],
 [3]]
'''
    lines = toml.read_table(text, "f", "a file")._lines
    places = {("a",): 1, ("b c", "d"): 2, ("list", 1, "x"): 7, ("t", 0): 9, ("t", 0, "u", 0): 10, ("t", 1): 11}
    places |= {("t", 1, "u", 0): 12, ("t", 1, "u", 0, "v", "e", "f"): 14, ("t", 1, "u", 0, "v", "e", "f", 1, 0): 15}
    assert {place: lines[place] for place in places} == places


def test_a_table_without_templates_has_shorter_messages() -> None:
    def told(text: str, read: str) -> str:
        table = toml.read_table(text, "f", "a file")
        with pytest.raises(Failure) as refused:
            table.allow("key") if read == "allow" else getattr(table, read)("key", *(["one"] if read == "each" else []))
        return str(refused.value)

    assert told("\nother = 1", "allow") == "f:2: a file has no `other`"
    assert told("key = 1", "text") == "f:1: `key` must be a string"
    assert told("key = 1", "inner") == "f:1: [key] must be a table"
    assert told("key = 1", "each") == "f:1: [[key]] must be written with two brackets"


def test_constants_and_sizes_can_be_set() -> None:
    text = with_line(4, 'constants = { clients = 50, half = "{keys / 2}" }')
    scenario = parse_scenario(text, "s.toml", {"clients": "7", "keys": "30"})
    for factor in (0.1, 1.0):
        point = points_of(scenario, Scale("", factor))[0]
        assert (point["clients"], point["keys"], point["half"]) == ("7", "30", "15")
    for settings, why in (
        ({"listen": "tcp"}, 'unknown constant or size "listen"'),
        ({"keys": "many"}, "the size keys must be above 0, not many"),
    ):
        with pytest.raises(Failure) as refused:
            parse_scenario(GOOD, "s.toml", settings)
        assert str(refused.value) == f"s.toml: {why}"


def test_messages_may_name_figures_and_have_them_in_readable_units() -> None:
    values = {"keys": "94042", "seconds": "12.5"}
    figures = {"filled.redis.rss": 124_000_000.0}
    for text, told in (
        ("{keys:count} of {keys} in {seconds} s", "94,042 of 94042 in 12.5 s"),
        ("{filled.redis.rss:bytes}, {keys*2:count}", "124 MB, 188,084"),
    ):
        assert expand_text(text, values, figures.get) == told
    for text in ("{kees:count}", "{keys"):
        with pytest.raises(Failure):
            expand_text(text, values, figures.get)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("-n {keys} {name}", "-n 1000 a b"),
        ("{keys}{keys}", "10001000"),
        ("{keys*2/3}", "666"),
        ("{-keys/3}", "-334"),
        ("{half}", "0.5"),  # unchanged; only results of arithmetic are rounded
        ("{half*3}", "1"),
        ("{2^ceil(log2(keys))}", "1024"),
        ("{max(64, keys*(2+3))}MiB", "5000MiB"),
        ("{keys*1000000000}", "1000000000000"),
        ("{empty}", ""),
        ("}", "}"),
        ("{keys", "a { has no closing }"),
        ("{keys/0}", "{keys/0} is not a number"),
        ("{unknown}", '{unknown} cannot be evaluated: unknown name "unknown"'),
        ("{name*2}", '{name*2} cannot be evaluated: unknown name "name"'),
        ("{}", "{} cannot be evaluated: it is empty"),
        ("{{keys}}", '{{keys} cannot be evaluated: unexpected "{"'),
        ("{keys*}", "{keys*} cannot be evaluated: it ends too early"),
    ],
)
def test_templates(text: str, expanded: str) -> None:
    try:
        found = expand(text, {"keys": "1000", "name": "a b", "half": "0.5", "empty": ""})
    except Failure as failure:
        found = str(failure)
    assert found == expanded


def test_points_are_in_order_the_last_sweep_varies_fastest_and_sizes_follow_the_scale() -> None:
    scenario = parse_scenario(
        """title = "T"
about = "A"
scale = { tiny = 0.1 }
constants = { clients = 50 }
sizes.keys = { full = 1000, least = 200 }
[[sweep]]
name = "a"
values = [1, 2, 3]
tiny = [1, 3]
also.b = ["one", "{a*100}", "{size+keys}"]
[[sweep]]
name = "size"
values = ["{keys/2}", "{keys*2}"]
[[step]]
wait = "1s"
""",
        "s.toml",
    )

    def told(scale: Scale) -> str:
        return "; ".join(
            " ".join(point[name] for name in ("a", "size", "keys")) for point in points_of(scenario, scale)
        )

    assert told(Scale()) == "1 500 1000; 1 2000 1000; 2 500 1000; 2 2000 1000; 3 500 1000; 3 2000 1000"
    assert told(Scale("tiny", 0.1)) == "1 100 200; 1 400 200; 3 100 200; 3 400 200"
    assert told(Scale("", 0.5)).startswith("1 250 500; ")
    assert points_of(scenario, Scale())[2]["b"] == "200"
    # A value of another sweep is computed before it is used.
    assert [point["b"] for point in points_of(scenario, Scale("tiny", 0.1))] == ["one", "one", "300", "600"]
    scenario.sweeps.clear()
    assert len(points_of(scenario, Scale())) == 1


def test_filters() -> None:
    values = {"a": "1", "b": "x"}
    for where in ({}, {"a": ["2", "1"]}, {"a": ["1"], "b": ["x"]}):
        assert matches(where, values)
    for where in ({"a": ["1"], "b": ["y"]}, {"a": []}, {"c": ["1"]}):
        assert not matches(where, values)


def test_scales() -> None:
    scenario = Scenario(scales={"small": 0.25, "tiny": 0.1})
    assert lab.parse_scale(scenario, "tiny") == Scale("tiny", 0.1)
    assert lab.parse_scale(scenario, "0.5") == Scale("", 0.5)
    assert lab.parse_scale(scenario, "1000") == Scale("", 1000)
    for text in ("0", "-1", "1001", "", "big", "1x", "nan", "inf", " 1"):
        with pytest.raises(Failure) as refused:
            lab.parse_scale(scenario, text)
        wanted = "a scale must be a number above 0 and at most 1000, or small, or tiny"
        assert str(refused.value) == f'{wanted}, not "{text}"'


def test_a_size_of_0_is_refused() -> None:
    scenario = Scenario(file="x.toml", sizes=[Size("seconds", full=10, at={"tiny": 0.3})], scales={"tiny": 0.01})
    assert lab.parse_scale(scenario, "0.05") == Scale("", 0.05)
    assert lab.parse_scale(scenario, "tiny") == Scale("tiny", 0.01)
    with pytest.raises(Failure) as refused:
        lab.parse_scale(scenario, "0.04")
    assert str(refused.value) == "x.toml: the size seconds is 0 at scale 0.04: use a larger scale"


def test_all_scenarios_have_a_small_scale() -> None:
    for file in Path(lab.__file__).parent.glob("scenarios/*.toml"):
        lab.parse_scale(lab.read_scenario(file), "0.001")


def test_when_an_event_is_due() -> None:
    for text, due in (
        ("25%", Due(True, 0.25, 0)),
        ("100%", Due(True, 1, 0)),
        ("1.5s", Due(False, 0, 1.5)),
        ("500ms", Due(False, 0, 0.5)),
        ("0s", Due(False, 0, 0)),
    ):
        assert lab.parse_due(text) == due
    for text in ("", "s", "1", "1 s", "1m", "101%", "-1%", "nan%", "infs", "1ss", "1e300s"):
        assert lab.parse_due(text) is None


def test_sizes_of_memory_and_command_lines() -> None:
    assert [lab.parse_memory(text) for text in ("4096", "3KiB", "256MiB", "1GiB")] == [4096, 3072, 1 << 28, 1 << 30]
    for text in ("", "MiB", "1MB", "-1", "1.5GiB", "1 GiB", "20000000TiB"):
        assert lab.parse_memory(text) is None
    for text, words in (
        (" a  b\tc\n", ["a", "b", "c"]),
        ("--command 'SET k v' \"x 'y'\"z ''", ["--command", "SET k v", "x 'y'z", ""]),
        ("", []),
        ("a 'b", None),
        ('a" b', None),
    ):
        assert lab.split_words(text) == words


# forktail's own scenarios

SHIPPED = sorted((Path(lab.__file__).parent / "scenarios").glob("*.toml"))


def add_figures(columns: list[Column], rows: list[str], results: Results) -> None:
    """Every figure that a column names, at every point."""
    for point in results.points:
        for column in columns:
            formulas = [with_values(with_row(column.value, row), point.values) for row in rows or [""]]
            for name in [name for formula in formulas for name in names_in(formula)]:
                name = name.removeprefix("base.")
                if column.format == Format.TEXT:
                    point.texts[name] = "a text"
                elif name not in point.values:
                    point.numbers[name] = 1000 + len(name)


def all_figures(scenario: Scenario, scale: Scale) -> Results:
    results = Results(points=[Point(values) for values in points_of(scenario, scale)])
    for table in scenario.tables:
        add_figures(table.columns, table.names, results)
    for chart in scenario.charts:
        add_figures(chart.series, chart.each, results)
    return results


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_tables_and_charts_of_every_scenario_can_be_made_at_every_scale(path: Path) -> None:
    scenario = lab.read_scenario(path)
    for scale in [Scale(), *(Scale(*scale) for scale in scenario.scales.items())]:
        results = all_figures(scenario, scale)
        tables, charts = make_tables(scenario, results), make_charts(scenario, results)
        if scale.name:  # has fewer values, so that columns may be empty
            continue
        for table in tables:
            assert table.rows
            for i, head in enumerate(table.heads):
                assert head.published or any(row[i].text != "-" for row in table.rows), (table.title, head.title)
        for chart in charts:
            assert all(series.dots for series in chart.series), chart.title


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_published_figure_is_in_a_row_at_full_scale(path: Path) -> None:
    scenario = lab.read_scenario(path)
    results = all_figures(scenario, Scale())
    for table in scenario.tables:
        made = make_table(scenario, table, results)
        rows = {
            "/".join(cell.text for cell, head in zip(row, made.heads, strict=True) if head.key) for row in made.rows
        }
        published = {row for column in table.columns for row in column.published}
        again = {row for row in published if re.search(r" (run )?2$", row)}  # the report has another row of this name
        assert published - again <= rows


def test_forktail_has_scenarios() -> None:
    assert len(SHIPPED) > 10
