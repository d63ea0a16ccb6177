# SPDX-License-Identifier: MIT
"""Recordings of several clients, replayed as fast as possible on a real cluster, while slots move, and in samples: the
data is that of one server, and the commands of each key are executed in their order.
"""

from collections import defaultdict

import pytest

from harness import eventually, load


class Appends:
    """Clients append to lists: alone, by a script, and in transactions, each with the next number of its list.

    csv: the recording. lengths: of each list. commands: their number.
    """

    def __init__(self, rounds, clients, keys):
        self.lengths, self._lines = defaultdict(int), []
        for i in range(rounds):
            self._client, key = f"c{i * 7 % clients}", f"k{i * 31 % keys}"
            if i % 10 == 3:
                self._add(f"WATCH,{key}", f"LLEN,{key}", "MULTI")
                self._add(f"RPUSH,{key},{self._next(key)}", "PUBLISH,channel,x", f"RPUSH,{key},{self._next(key)}")
                self._add("EXEC")
            elif i % 10 == 6:
                script = "\"return redis.call('RPUSH', KEYS[1], ARGV[1])\""
                self._add(f"EVAL,{script},1,{key},{self._next(key)}")
            else:
                self._add("PING" if i % 10 == 9 else f"RPUSH,{key},{self._next(key)}")
        self.commands, self.csv = len(self._lines), "".join(self._lines)

    def _next(self, key):
        self.lengths[key] += 1
        return self.lengths[key] - 1

    def _add(self, *commands):
        for command in commands:
            number = len(self._lines)
            self._lines.append(f"{number // 10000}.{number % 10000:04},{self._client},{command}\n")


def lists(nodes, appends):
    """The length of each list, found on one node. The elements of a list count from 0 to its length in the
    recording - 1, and again after that."""
    script = (
        "local all = redis.call('LRANGE', KEYS[1], 0, -1) for i, v in ipairs(all) do "
        "if tonumber(v) ~= (i - 1) % tonumber(ARGV[1]) then return -1 end end return #all"
    )
    found = {}
    for node in nodes:
        for key, lap in appends.lengths.items():
            length = str(node.connection().reply("EVAL", script, "1", key, str(lap)))
            if length == "0" or length.startswith("MOVED"):
                continue
            assert int(length) > 0, key
            assert key not in found
            found[key] = int(length)
    return found


APPENDS = Appends(3000, 20, 50)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "csv"
    path.write_text(APPENDS.csv)
    return path


@pytest.mark.parametrize(
    ("order", "connections"),
    # With one connection, clients are in their order, too.
    [("client", ["-c", 1]), ("key", ["-c", 30, "--threads", 2])],
    ids=["client", "key"],
)
def test_a_cluster_gets_the_data_of_the_recording_and_each_list_in_order(
    cluster, start_load, recording, order, connections
):
    run = start_load(
        *cluster.words, "--replay", recording, "--replay-speed", "max", "--replay-order", order, *connections
    ).done()  # fmt: skip
    assert run.json["replay"]["order"] == order
    assert (run.total["requests"], run.total["errors"]) == (APPENDS.commands, 0)
    assert run.figures["redirects"]["moved"] == 0
    assert len(run.figures["nodes"]) == 3
    assert lists(cluster.primaries, APPENDS) == APPENDS.lengths


def test_one_server_gets_the_same_data(redis, recording):
    assert load("-s", redis.socket, "--replay", recording, "--replay-speed", "max", "-q").status == 0
    assert lists([redis.instance], APPENDS) == APPENDS.lengths


@pytest.mark.parametrize("speed", ["1", "max"])
def test_a_cluster_refuses_other_databases_and_keys_of_several_slots(cluster, start_load, tmp_path, speed):
    path = tmp_path / "csv"
    path.write_text(
        "0,a,SET,x,1\n0,a,SELECT,3\n0,a,SET,y,1\n0,b,MSET,x,2,y,2\n0,b,MULTI\n0,b,SET,x,3\n0,b,EXEC\n0,a,SELECT,0\n"
        "0,a,SET,z,1\n"
    )
    run = start_load(*cluster.words, "--replay", path, "--replay-speed", speed)
    assert run.wait().status == 3
    assert "a cluster has no database 3" in run.err
    assert run.figures["error_replies"]["CROSSSLOT"] == 1
    keys = [key for node in cluster.primaries for key in node.connection().ask("KEYS", "*")]
    assert sorted(keys) == ["x", "z"]


def test_while_slots_move_each_list_stays_in_order(own_cluster, start_load, recording):
    # The replay is repeated until slots have moved. The importing node has keys before the others know it.
    run = start_load(*own_cluster.words, "--replay", recording, "--rate", 10000, "-l")
    source, target = own_cluster.nodes[:2]
    old, new = source.connection(), target.connection()
    source_id, target_id = (node.ask("CLUSTER", "MYID")[0] for node in (old, new))

    def imported(node, key):
        """The length of a list on a node that imports its slot."""
        node.ask("ASKING")
        length = node.reply("LLEN", key)
        return int(length) if length.isdecimal() else 0

    def wait_for(node, key, length):
        assert eventually(lambda: imported(node, key) > length, 30), key

    moved = 0
    for key in sorted(APPENDS.lengths):
        slot = old.ask("CLUSTER", "KEYSLOT", key)[0]
        if old.reply("EXISTS", key).startswith("MOVED"):
            continue
        wait_for(old, key, imported(old, key))
        # From here on only redirects say where keys are.
        if moved == 0:
            for node in own_cluster.nodes:
                node.connection().ask("ACL", "SETUSER", "default", "-cluster|slots")
        new.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        while names := old.ask("CLUSTER", "GETKEYSINSLOT", slot, "1"):
            old.reply("MIGRATE", "127.0.0.1", str(target.port), names[0], "0", "5000")
        wait_for(new, key, imported(new, key) + 2)
        for node in target, source, own_cluster.nodes[2]:
            node.connection().ask("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        wait_for(new, key, imported(new, key) + 2)
        moved += 1
        if moved == 2:
            break
    assert moved == 2
    assert run.interrupt(30).status == 0, run.err
    # Commands that were due when the signal arrived were not sent.
    kinds = run.total["errors_by_kind"]
    assert run.total["errors"] == kinds.get("never sent", 0), kinds
    assert run.figures["redirects"]["ask"] >= 2
    assert run.figures["redirects"]["moved"] >= 2
    assert lists(own_cluster.primaries, APPENDS).keys() == APPENDS.lengths.keys()


def test_a_sample_has_all_commands_of_some_keys_and_no_others(redis, start_load, tmp_path):
    appends = Appends(6000, 20, 1500)
    recording = tmp_path / "csv"
    recording.write_text(appends.csv)

    def sampled(seed):
        redis.ask("FLUSHALL")
        run = start_load(
            "-s", redis.socket, "--replay", recording, "--replay-speed", "max", "--replay-sample", "20%", "--seed", seed
        ).done()
        omitted = run.json["replay"]["outside_sample"]
        assert run.json["replay"]["commands"] + omitted == appends.commands
        assert f"omitted by --replay-sample: {omitted} commands" in run.out
        found = lists([redis.instance], appends)
        assert found.items() <= appends.lengths.items()
        # 1500 keys in as many slots: 300, +- four standard deviations.
        assert 300 - 4 * 16 < len(found) < 300 + 4 * 16
        return found

    assert sampled(0) != sampled(1)
