# SPDX-License-Identifier: MIT
"""Injections into the disk below the append-only file: the suite's own device, made slow for a while."""
import os
import signal
import time

import host
from registry import case
from trial import wait_for


def aof_server(t, fsync, *config):
    clock = host.CallsClock(t)
    disk = host.Disk(t)
    server = t.redis("--appendonly", "yes", "--appendfsync", fsync, *config, data=disk.path, env=clock.environment)
    return server, disk, clock


@case(3, "fsync-always", ["fsync"], (100, 50, 20), threshold="8ms")
def fsync_always(t, magnitudes):
    server, disk, clock = aof_server(t, "always")
    t.begin(["-s", server.socket], rate=500)
    for iops in magnitudes:
        with t.injecting("fsync", f"{iops} writes/s", server.tid, truth=clock.of("fsync")):
            with disk.limited("write_iops", iops):
                time.sleep(0.4)
            server.set("after", "x")


@case(15, "competing-writer", ["fsync"], (16, 32, 64), threshold="4ms")
def competing_writer(t, magnitudes):
    """Direct writes by another process to the disk of the append-only file."""
    clock = host.CallsClock(t)
    server = t.redis("--appendonly", "yes", "--appendfsync", "always", env=clock.environment)
    other = os.path.join(t.directory, "other")
    t.begin(["-s", server.socket], rate=500)
    for megabytes in magnitudes:
        writer = t.start(["sh", "-c", f"kill -STOP $$; exec dd if=/dev/zero of={other} bs={megabytes}M count=8 oflag=direct"])
        host.wait_stopped(writer.pid)
        with t.injecting("fsync", f"{megabytes} MB writes", server.tid, truth=clock.of("fsync"), culprit=str(writer.pid)):
            writer.send_signal(signal.SIGCONT)
            writer.wait()
            server.set("after", "x")


@case(4, "write-behind-fsync", ["file-write"], (1, 2, 4), threshold="8ms")
def write_behind_fsync(t, magnitudes):
    """Everysec, on a disk so slow that dirty pages accumulate: fsync takes long in the background, and write() waits on
    Redis' main thread. The device gets little room for dirty pages, because it would take minutes otherwise."""
    server, disk, clock = aof_server(t, "everysec")
    disk.little_dirty(1 << 20)
    t.begin(["-s", server.socket], rate=1000, ratio="1:1", load=["-d", "2000"])
    for megabytes in magnitudes:
        with t.injecting("file-write", f"{megabytes} MB dirty", server.tid, truth=clock.of("file-write")):
            with disk.limited("write_bps", 4 << 20):
                host.sh("dd", "if=/dev/zero", f"of={disk.path}/other", "bs=64k", f"count={megabytes * 16}", "conv=notrunc,fsync",
                        "status=none")
            server.set("after", "x")


@case(5, "rewrite-end", ["fsync"], (100, 50, 25), threshold="4ms")
def rewrite_end(t, magnitudes):
    """The end of an AOF rewrite: the main thread syncs the manifest and renames files."""
    server, disk, clock = aof_server(t, "everysec")
    server.execute_command("DEBUG", "POPULATE", 12_000)
    t.begin(["-s", server.socket], rate=500)
    for iops in magnitudes:
        server.config_set("rdb-key-save-delay", 250)  # for 12,000 keys: three seconds
        server.execute_command("BGREWRITEAOF")
        wait_for("the rewrite's child", lambda: server.info("persistence")["aof_rewrite_in_progress"])
        with t.injecting("fsync", f"{iops} writes/s", server.tid, truth=clock.of("fsync")):
            with disk.limited("write_iops", iops):
                wait_for("the rewrite's end", lambda: not server.info("persistence")["aof_rewrite_in_progress"], 60)
                server.set("after", "x")
