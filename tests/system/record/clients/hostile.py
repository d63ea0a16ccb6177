# SPDX-License-Identifier: MIT
# Clients that send what no client should, to the Redis at a Unix socket: hostile.py SOCKET KIND.
import random
import socket
import sys
import time
from contextlib import suppress

path, kind = sys.argv[1:3]


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s


def send(s, data):
    with suppress(OSError):  # the server may have closed the connection
        s.sendall(data)


def garbage():
    for i in range(300):
        s = connect()
        r = random.Random(i)
        send(s, r.choice([b"", b"*", b"*1\r\n$", b"GET "]) + r.randbytes(r.randrange(20000)))
        s.settimeout(0.01)
        with suppress(OSError):
            s.recv(1000)


def halves():
    whole = b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$5\r\nvalue\r\n"
    all = [connect() for _ in range(1000)]
    for i, s in enumerate(all):
        send(s, whole * (i % 20) + whole[: i % len(whole)])
    time.sleep(0.5)


def announced():
    all = [connect() for _ in range(100)]
    for s in all:
        send(s, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n" + b"x" * 10000)
    time.sleep(0.3)


def large():
    s = connect()
    send(s, b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$100000000\r\n" + bytes(100000000) + b"\r\n")
    assert s.recv(5) == b"+OK\r\n"
    for _ in range(2):
        send(s, b"*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n")
        left = 100000000 + len("$100000000\r\n\r\n")
        while left:
            left -= len(s.recv(1 << 20))
    send(s, b"*2\r\n$3\r\nDEL\r\n$5\r\nlarge\r\n")
    s.recv(100)


def name():
    for _ in range(20):
        s = connect()
        send(s, b"*1\r\n$1000000\r\n" + b"N" * 1000000 + b"\r\n")
        s.recv(10000)
        send(s, b"*1\r\n$4\r\nPING\r\n")
        s.recv(10000)


# Requests whose answers nobody reads. Redis sends until the socket is full, and stores the rest.
def unread():
    all = [connect() for _ in range(20)]
    request = b"*2\r\n$3\r\nGET\r\n$5\r\nvalue\r\n"
    send(all[0], b"*3\r\n$3\r\nSET\r\n$5\r\nvalue\r\n$1000\r\n" + b"v" * 1000 + b"\r\n")
    for s in all:
        send(s, request * 5000)
    time.sleep(0.5)


def connections():
    end = time.monotonic() + 2
    count = 0
    while time.monotonic() < end:
        s = connect()
        send(s, b"*1\r\n$4\r\nPING\r\n")
        if count % 2:
            s.recv(100)
        s.close()
        count += 1


globals()[kind]()
