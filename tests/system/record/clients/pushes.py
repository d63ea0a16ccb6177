# SPDX-License-Identifier: MIT
# Connections on which the server writes without a request, or does not answer: each returns to ordinary
# requests, of which the test counts the ECHO commands.
import socket
import sys
import threading
import time

import redis

port = int(sys.argv[1])
publisher = redis.Redis(port=port)


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words))  # in two pieces
        self.socket.sendall(b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words)))

    def reply(self):
        line = self.file.readline().rstrip()
        kind, rest = line[:1], line[1:]
        if kind in b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind in b"*>":
            return [self.reply() for _ in range(int(rest))]
        if kind in b"%":
            return [self.reply() for _ in range(2 * int(rest))]
        return rest

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    # Ten requests that the test counts.
    def echo(self):
        for i in range(10):
            assert self.ask("ECHO", str(i)) == str(i).encode()


def after(seconds, action):
    thread = threading.Timer(seconds, action)
    thread.start()
    return thread


c = Connection()
for _ in range(5):  # waits, then does not
    later = after(0.02, lambda: publisher.rpush("q", "a", "b"))
    assert c.ask("BLPOP", "q", "0") == [b"q", b"a"]
    later.join()
    assert c.ask("BLPOP", "q", "0") == [b"q", b"b"]
c.echo()
assert c.ask("BLPOP", "none", "0.03") == []  # nil
c.echo()
c.ask("XREAD", "BLOCK", "20", "STREAMS", "none", "0")
c.echo()

c = Connection()
c.ask("SUBSCRIBE", "channel")
for i in range(200):
    publisher.publish("channel", f"message {i}")
for _ in range(200):
    assert c.reply()[0] == b"message"
c.ask("UNSUBSCRIBE", "channel")
c.echo()

c = Connection()
c.ask("HELLO", "3")
c.ask("CLIENT", "TRACKING", "ON")
for i in range(20):
    c.ask("GET", "tracked")
    publisher.set("tracked", i)
    c.reply()  # the invalidation
c.echo()

c = Connection()
c.ask("MONITOR")
for _ in range(50):
    publisher.ping()
time.sleep(0.05)
c.send("RESET")
while c.reply() != b"RESET":
    pass
c.echo()

c = Connection()
c.send("CLIENT", "REPLY", "OFF")
for i in range(50):
    c.send("SET", "silent", str(i))
assert c.ask("CLIENT", "REPLY", "ON") == b"OK"
c.echo()
for i in range(10):
    c.send("CLIENT", "REPLY", "SKIP")
    c.send("SET", "silent", str(i))
c.echo()
