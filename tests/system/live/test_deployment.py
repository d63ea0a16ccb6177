# SPDX-License-Identifier: MIT
"""The unit, the manifest and the container's command as they are in contrib/: a recorder with exactly their
directories' modes and capabilities records, and gives the ring to its user.
"""

import os
import pwd
import re
import stat

import pytest

from forktail.programs import program
from harness import TREE, Recording, eventually, needs_root, run_program
from notify_service import Service

NOBODY = pwd.getpwnam("nobody").pw_uid


def listed(file, before, ends="\n"):
    """What follows `before` in the lines of a file of the tree, each up to one of the characters `ends`."""
    found = re.findall(f"{re.escape(before)}([^\n{re.escape(ends)}]*)", (TREE / file).read_text())
    assert found, before
    return found


def capabilities(file, before, ends="\n"):
    """The capabilities in these lists, without CAP_."""
    words = re.split(r"[\s,]+", " ".join(listed(file, before, ends)))
    return {word.removeprefix("CAP_") for word in words if word}


UNIT = "contrib/systemd/forktail-record.service"
OF_UNIT = capabilities(UNIT, "CapabilityBoundingSet=")
OF_MANIFEST = capabilities("contrib/kubernetes/daemonset.yaml", "add: [", "]")
OF_CONTAINER = capabilities("contrib/container/Containerfile", "--cap-add=", " ")


def with_capabilities(names):
    """A command that runs another one with exactly these capabilities, which it cannot extend."""
    bounding = ",".join(["-all", *(f"+{name.lower()}" for name in sorted(names))])
    return ["setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={bounding}"]


def make_directory(path, mode):
    """As a service manager makes it. Returns its path."""
    path.mkdir()
    path.chmod(int(mode, 8))
    return path


def check_service(directory, redis, state, names):
    """It records into a ring of its user below the directory `state`, takes a snapshot, and does so again after a
    restart."""
    before = 0
    with Service(directory, redis, with_capabilities(names), state / "ring") as service:

        def segments():
            return len(list(service.ring.glob("segment-*")))

        for times in (1, 2):
            service.await_ready()
            assert "cannot" not in service.recorder.err
            assert segments() > before  # not ready because of what the previous recorder wrote
            assert eventually(lambda: service.trigger("deploy"), 10), service.recorder.err
            assert eventually(lambda: service.snapshots == times, 120), service.recorder.err  # noqa: B023
            ring = service.ring.stat()
            assert (ring.st_uid, stat.S_IMODE(ring.st_mode)) == (NOBODY, 0o700)
            assert service.end() == 0
            service.manager.heard()
            before = segments()
            if times == 1:
                service.start()


@needs_root
@pytest.mark.parametrize("key", ["StateDirectoryMode=", "RuntimeDirectoryMode="])
def test_a_service_with_the_units_capabilities_records_below_the_units_directories(open_directory, redis, key):
    state = make_directory(open_directory / "of_unit", listed(UNIT, key)[0])
    check_service(open_directory, redis, state, OF_UNIT)


@needs_root
def test_a_recorder_with_the_manifests_capabilities_records_below_a_directory_as_the_kubelet_makes_it(
    open_directory, redis
):
    state = make_directory(open_directory / "of_host", "0755")  # DirectoryOrCreate
    check_service(open_directory, redis, state, OF_MANIFEST)


@needs_root
def test_a_recorder_with_the_containers_capabilities_writes_into_the_directory_of_the_user_who_started_it(
    open_directory, redis
):
    state = make_directory(open_directory / "of_user", "0755")
    os.chown(state, NOBODY, NOBODY)
    out = state / "server.forktail"
    words = [program("forktail"), "record", "--unix", redis.socket, "--duration", "1s", "-o", out]
    ran = run_program(*with_capabilities(OF_CONTAINER), *words)
    assert ran.status == 0, ran.err
    assert not Recording(out).damage.no_trailer
    check_service(open_directory, redis, state, OF_CONTAINER)


def test_the_unit_the_manifest_and_the_container_have_the_same_capabilities_and_the_guide_explains_each():
    assert OF_UNIT == OF_MANIFEST == OF_CONTAINER
    assert capabilities("docs/guides/always-on.md", "| CAP_", "|") >= OF_UNIT
