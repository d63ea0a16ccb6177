# SPDX-License-Identifier: MIT
"""forktail record --config as a service of type notify, on a real redis-server: its messages to the manager, that a
reload keeps the ring, that forktail trigger reaches it, that it is silent once its recorder hangs, and that it
continues while its disk refuses to write.
"""

import errno
import os
import signal
import time

import pytest

from disks import StandingDisk
from harness import eventually, forktail, needs_root
from notify_service import Service

pytestmark = needs_root


@pytest.fixture
def service(open_directory, redis):
    with Service(open_directory, redis) as started:
        yield started


def test_a_service_reports_when_it_is_ready_its_status_and_its_end_and_a_reload_and_a_trigger_reach_it(service):
    manager, recorder = service.manager, service.recorder
    service.await_ready()
    assert manager.hears("WATCHDOG=1", 5)
    assert manager.hears("STATUS=recording; ", 15)

    assert forktail("trigger", service.ring, "later").status == 1
    service.write_config('[[trigger]]\nname = "later"\n')
    before = len(list(service.ring.iterdir()))
    recorder.signal(signal.SIGHUP)
    assert eventually(lambda: service.trigger("later"), 10), recorder.err
    assert eventually(lambda: service.snapshots == 1, 120), recorder.err
    assert recorder.running
    assert len(list(service.ring.iterdir())) >= before

    manager.heard()  # to have space for the last message
    assert service.end() == 0
    assert manager.hears("STOPPING=1", 10) == 1


def test_the_watchdog_gets_no_message_while_the_recorder_hangs_and_does_again_once_it_continues(service):
    manager, recorder = service.manager, service.recorder
    assert manager.hears("WATCHDOG=1", 30), recorder.err
    recorder.signal(signal.SIGSTOP)
    time.sleep(5)  # its last message may be three seconds old
    manager.heard()
    time.sleep(3)
    assert manager.heard("WATCHDOG=1") == 0
    recorder.signal(signal.SIGCONT)
    assert manager.hears("WATCHDOG=1", 10)


@pytest.mark.quiet
@pytest.mark.parametrize("error", [errno.EROFS, errno.EIO], ids=["EROFS", "EIO"])
def test_the_watchdog_gets_messages_while_the_disk_refuses_to_write_and_the_recorder_continues(
    open_directory, redis, error
):
    with StandingDisk(open_directory) as disk:
        disk.path.chmod(0o711)  # for the guard
        with Service(open_directory, redis, disk.within, disk.inside / "ring") as service:
            service.await_ready()
            disk.fail(error)
            lost = f"{os.strerror(error)}. Events are lost"
            assert eventually(lambda: lost in service.recorder.err, 20), service.recorder.err
            # The guard's last messages may be as late as its last records.
            for _period in range(5):
                assert service.manager.hears("WATCHDOG=1", 3)
            assert service.recorder.running
            service.end()
