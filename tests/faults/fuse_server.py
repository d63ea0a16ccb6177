# SPDX-License-Identifier: MIT
"""A FUSE file system with one file, `program`, that stops answering when it gets SIGUSR1, for good.

Usage: fuse_server.py DESCRIPTOR FILE. DESCRIPTOR is /dev/fuse, which the parent opened and mounts; the content is FILE's.
"""
import os
import signal
import struct
import sys

DIRECTORY, PROGRAM = 1, 2
NO_SUCH_FILE, NO_DATA, NOT_IMPLEMENTED = -2, -61, -38
IN_HEADER = struct.Struct("<IIQQIIII")  # length, operation, unique, node, user, group, process, padding
OUT_HEADER = struct.Struct("<IiQ")
HELD = struct.Struct("<QI4x")  # how long the kernel may keep attributes: not at all

silent = False


def stop_answering(*_):
    global silent
    silent = True


def attributes(node, size):
    mode = 0o040755 if node == DIRECTORY else 0o100755
    return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node, body, content):
    """The error and the body of an answer; None: the kernel expects no answer."""
    size = 4096 if node == DIRECTORY else len(content)
    if operation == 26:  # init: version 7.31, 128 kB at once
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 131072, 0, 12, 9, 131072, 1, 32, 0, *[0] * 8)[:64]
    if operation == 1:  # lookup
        if node == DIRECTORY and body.rstrip(b"\0") == b"program":
            return 0, struct.pack("<QQQQII", PROGRAM, 1, 0, 0, 0, 0) + attributes(PROGRAM, len(content))
        return NO_SUCH_FILE, b""
    if operation == 3:  # getattr
        return 0, HELD.pack(0, 0) + attributes(node, size)
    if operation in (14, 27):  # open, opendir
        return 0, struct.pack("<QII", 1, 0, 0)
    if operation == 15:  # read
        _, offset, length = struct.unpack_from("<QQI", body)
        return 0, content[offset:offset + length]
    if operation == 17:  # statfs
        return 0, struct.pack("<5Q10I", 1000, 1000, 1000, 10, 10, 4096, 255, 4096, *[0] * 7)
    if operation in (18, 25, 28, 29):  # release, flush, readdir, releasedir
        return 0, b""
    if operation in (22, 23):  # getxattr, listxattr
        return NO_DATA, b""
    if operation in (2, 36, 42):  # forget, interrupt, batch_forget
        return None
    return NOT_IMPLEMENTED, b""


def main():
    signal.signal(signal.SIGUSR1, stop_answering)
    fuse = int(sys.argv[1])
    with open(sys.argv[2], "rb") as f:
        content = f.read()
    while True:
        try:
            request = os.read(fuse, 1 << 20)
        except OSError:
            return  # unmounted
        _, operation, unique, node, *_ = IN_HEADER.unpack_from(request)
        answered = answer(operation, node, request[IN_HEADER.size:], content)
        if answered and not silent:
            error, body = answered
            os.write(fuse, OUT_HEADER.pack(OUT_HEADER.size + len(body), error, unique) + body)


main()
