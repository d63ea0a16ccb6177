# SPDX-License-Identifier: MIT
"""Checks the JSON that forktail's commands print against the schemas that they print.

A published schema allows keys that it does not know, because new ones may appear. Here it allows none, so a key that is
added without its line in the schema fails a test.
"""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from forktail.programs import program
from processes import run as run_program

# The commands with schemas, and the option of their JSON.
OUTPUTS = {
    ("explain", "--json"): (),
    ("explain", "--features"): ("--features",),
    ("gate", "--json"): (),
    ("diff", "--json"): (),
    ("doctor", "--settings"): ("--settings",),
    ("doctor", "--json"): (),
    ("causes", "--json"): (),
    ("watch", "--json"): (),
    ("forecast", "--json"): (),
    ("try", "--json"): (),
}
_ENTRIES = 100  # of a list that are checked: the first ones


def strict(schema: Any) -> Any:
    """The schema with no further key allowed in any object whose keys it lists."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {**more, **{key: strict(value) for key, value in schema.items()}}


def shortened(value: Any) -> Any:
    if isinstance(value, list):
        return [shortened(one) for one in value[:_ENTRIES]]
    return {key: shortened(one) for key, one in value.items()} if isinstance(value, dict) else value


@cache
def schema_of(command: str, option: str) -> Any:
    """The schema as the command prints it."""
    ended = run_program(program("forktail"), command, *OUTPUTS[command, option], "--json-schema")
    assert ended.status == 0 and not ended.err, ended.err
    return json.loads(ended.out)


@cache
def _validator(command: str, option: str) -> Draft202012Validator:
    return Draft202012Validator(strict(schema_of(command, option)))


def check(command: str, option: str, document: Any) -> None:
    """Fails the test if the document is not as the schema says."""
    errors = list(_validator(command, option).iter_errors(shortened(document)))
    assert not errors, "\n".join(f"forktail {command} {option}: {e.json_path}: {e.message}" for e in errors[:5])


def check_output(words: tuple[Any, ...], printed: str) -> None:
    """The same for what `forktail words...` printed, if that is one of these outputs."""
    chosen = [(command, option) for command, option in OUTPUTS if words[:1] == (command,) and option in words]
    if chosen and printed and "--json-schema" not in words and {"--json", "--features"} & set(words):
        check(*chosen[0], json.loads(printed))
