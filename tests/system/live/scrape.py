# SPDX-License-Identifier: MIT
"""Requests to a metrics server at a port or a Unix socket, without a client that would correct them, and the values in
its answers.
"""

import socket
from contextlib import suppress
from typing import NamedTuple


class Answer(NamedTuple):
    """An answer over HTTP. status: its first line, "HTTP/1.1 200 OK"; "" without one."""

    status: str
    headers: str
    body: str


def connect(where):
    """A connection to "/PATH" or "127.0.0.1:PORT"."""
    connection = socket.socket(socket.AF_UNIX if where.startswith("/") else socket.AF_INET)
    connection.settimeout(20)
    connection.connect(where if where.startswith("/") else ("127.0.0.1", int(where.rpartition(":")[2])))
    return connection


def send(where, request):
    """Sends these bytes. The answer is what arrives until the server closes the connection."""
    data = b""
    with suppress(OSError), connect(where) as connection:
        with suppress(OSError):  # it may refuse before it has read everything
            connection.sendall(request)
        while part := connection.recv(65536):
            data += part
    head, _, body = data.decode(errors="replace").partition("\r\n\r\n")
    status, _, headers = head.partition("\r\n")
    return Answer(status, headers, body)


def get(where, path="/metrics", *headers):
    """The answer to a GET with these header lines."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return send(where, "\r\n".join(lines).encode())


def series(name, **labels):
    """The name of a series: name{label="value",...}."""
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inside}}}"


def values(text):
    """The values of all series by their names."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
