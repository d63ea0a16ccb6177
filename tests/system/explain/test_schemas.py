# SPDX-License-Identifier: MIT
"""--json-schema, and explain --features. The other tests check each JSON that they read against its schema
(tests/support/schemas.py)."""

import json
import os
import shutil

import pytest
from jsonschema import Draft202012Validator

from harness import TREE, explain, forktail
from schemas import OUTPUTS, check, schema_of

RUNS = [TREE / "tests/compat/0.1/run", TREE / "tests/compat/1.0-arm64/run"]


def keys(schema):
    """All names of keys in a schema."""
    if isinstance(schema, list):
        return set().union(*map(keys, schema))
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties", {})
    return set(properties).union(*(keys(value) for value in [*properties.values(), *schema.values()]))


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_a_schema_is_one_and_the_page_of_explain_has_its_keys(command, option):
    schema = schema_of(command, option)
    Draft202012Validator.check_schema(schema)
    if command == "explain":
        page = (TREE / "docs/reference/explain.md").read_text()
        assert {key for key in keys(schema["properties"]) | keys(schema["$defs"]) if key not in page} == set()


@pytest.mark.parametrize("run", RUNS)
def test_the_outputs_of_old_recordings_are_as_the_schemas_say(run):
    assert explain(run, "--requests")["slow_requests"]
    gate = json.loads(forktail("gate", run, "--json", "p99.9 < 1us", "fork.max < 20ms").out)
    assert not gate["kept"]
    assert forktail("doctor", "--json").status in (0, 1, 3)


def test_two_runs_compared_are_as_the_schema_says():
    assert json.loads(forktail("diff", *RUNS, "--json").out)["verdict"]


def test_a_key_that_the_schema_lacks_and_a_missing_one_fail():
    gate = json.loads(forktail("gate", RUNS[0], "--json", "p99 < 1s").out)
    gate["limits"][0]["new"] = 1
    with pytest.raises(AssertionError, match="'new' was unexpected"):
        check("gate", "--json", gate)
    del gate["limits"][0]["new"], gate["answer"]
    with pytest.raises(AssertionError, match="'answer' is a required property"):
        check("gate", "--json", gate)


@pytest.mark.parametrize("run", RUNS)
def test_features_are_the_same_bytes_for_the_same_recording_and_those_of_explain(run, tmp_path):
    text = forktail("explain", run, "--features").out
    assert len(text.encode()) <= 20_000
    shutil.copytree(run, tmp_path / "moved")
    os.utime(tmp_path / "moved/server.forktail")
    assert forktail("explain", tmp_path / "moved", "--features", env={"TZ": "Asia/Tokyo"}).out == text
    features, whole = json.loads(text), explain(run)
    for key in ("forktail", "answer", "verdict", "slow"):
        assert features[key] == whole[key]
    assert features["requests"] == {key: whole["requests"][key] for key in features["requests"]}
    assert [one["cause"] for one in features["causes"]] == [one["cause"] for one in whole["causes"]]
    assert [one["share"] for one in features["causes"]] == [one["share"] for one in whole["causes"]]
    assert features["episodes"]["count"] == len(whole["episodes"])
    assert features["drops"] == whole["drops"]["count"]
    assert {one["program"] for one in features["recordings"]} == {"forktail-load", "forktail-record"}
    assert all(one["kernel"] for one in features["recordings"])


def test_features_exclude_other_outputs():
    ended = forktail("explain", RUNS[0], "--features", "--all")
    assert ended.status == 2 and "mutually exclusive" in ended.err
