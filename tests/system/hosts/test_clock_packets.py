# SPDX-License-Identifier: MIT
"""forktail-clock and foreign packets: the serving side answers valid questions only, and the asking side accepts only
its peer's answer to its question.
"""

import socket
import struct
from typing import NamedTuple

import pytest

from forktail.programs import program
from forktail.servers.listen import free_port
from harness import Recording, eventually

ASKS, ANSWERS = 1, 2


class Packet(NamedTuple):
    """A packet of hosts/clock/packet.h."""

    magic: int = 0x4B435446
    version: int = 1
    kind: int = ASKS
    cookie: int = 0x1122334455667788
    number: int = 7
    received_ns: int = 0
    sent_ns: int = 0
    clock_id: bytes = b""
    host: bytes = b""


FORMAT = "<IHHQQQQ96s64s"


def packed(packet):
    return struct.pack(FORMAT, *packet)


def unpacked(data):
    return Packet(*struct.unpack(FORMAT, data))


@pytest.fixture
def udp():
    with socket.socket(type=socket.SOCK_DGRAM) as one:
        one.settimeout(0.5)
        yield one


def test_clock_serve_answers_questions_each_with_as_many_bytes_and_nothing_else(background, udp):
    peer = ("127.0.0.1", free_port())
    serve = background(program("forktail"), "clock", "serve", "--listen", "{}:{}".format(*peer))
    assert eventually(lambda: "answering on" in serve.err)
    right = Packet()
    data = packed(right)
    wrong = [right._replace(magic=right.magic + 1), right._replace(version=2), right._replace(kind=ANSWERS)]
    for foreign in (data + b"\0", data[:-1], data[:1], b"", *map(packed, wrong)):
        udp.sendto(foreign, peer)
    with pytest.raises(TimeoutError):
        udp.recv(1000)

    udp.sendto(data, peer)
    answer = unpacked(udp.recv(1000))
    assert (answer.kind, answer.cookie, answer.number) == (ANSWERS, right.cookie, right.number)
    assert 0 < answer.received_ns <= answer.sent_ns
    ended = serve.interrupt(30)
    assert ended.status == 0
    assert "1 requests answered, 7 other packets dropped" in ended.err


def test_clock_probe_accepts_only_its_peers_answer_to_its_question_and_counts_other_packets(background, udp, tmp_path):
    udp.bind(("127.0.0.1", 0))
    file = tmp_path / "clock.forktail"
    words = ["{}:{}".format(*udp.getsockname()), "-o", file, "--interval", "20ms", "--duration", "1s"]
    probe = background(program("forktail"), "clock", "probe", *words)
    questions = 0
    # Every question gets six packets. Only the last but one is valid, because a copy follows it.
    while probe.running:
        try:
            data, peer = udp.recvfrom(1000)
        except TimeoutError:
            continue
        questions += 1
        now = 1_000_000_000 * questions
        names = {"clock_id": b"the peer's", "host": b"peer"}
        right = unpacked(data)._replace(kind=ANSWERS, received_ns=now, sent_ns=now, **names)
        sent = [
            packed(right)[:40],  # too short
            packed(right._replace(cookie=(right.cookie + 1) % 2**64)),
            packed(right._replace(sent_ns=now - 1)),  # sent before it came
        ]
        if questions > 1:
            sent.append(packed(right._replace(clock_id=b"another clock's")))
        for answer in (*sent, packed(right), packed(right)):
            udp.sendto(answer, peer)
    ended = probe.wait(10)
    assert ended.status == 0, ended.err
    assert questions > 8
    recording = Recording(file)
    assert recording.error == ""
    summary = recording.summary
    assert 0 < summary["answered"] <= summary["asked"]
    assert summary["foreign"] >= 3 * (summary["answered"] - 1)  # short, cookie, order
    assert summary["late"] >= summary["answered"] - 2  # copies
    assert summary["other_clock"] >= summary["answered"] - 2
    assert recording.manifest["peer"]["clock_id"] == "the peer's"
