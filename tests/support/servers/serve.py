# SPDX-License-Identifier: MIT
"""Starts servers for a test in C++ (started.h), with the package's forktail.servers.

    serve.py [DIRECTORY]

It reads requests from standard input, one JSON object a line, and answers each with one: {"start": PLAN} (the fields of
ServerPlan), {"find": KIND}. When its input closes, the servers end and the temporary directory is removed. Data in
DIRECTORY stays.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from forktail.failure import Failure
from forktail.files import read_file
from forktail.host.session import Session
from forktail.servers import Behind, ServerPlan, Topology, find_server, start_servers


def start(session, topology, fields):
    behind = [Behind(*pair) for pair in fields.pop("behind", [])]
    try:
        start_servers(session, ServerPlan(**fields, behind=behind), topology.directory + "/logs", topology)
    except Failure as failure:
        log = read_file(topology.instances[-1].log) if topology.instances else ""
        return {"error": f"{failure}\n{log}"}
    for one in topology.instances:
        one.child.needed = False  # tests may end servers at any time
        if one.redis:
            one.redis.close()  # all clients belong to the test
    return {
        "servers": [
            {
                "server": one.server,
                "pid": one.child.pid,
                "socket": one.socket,
                "port": one.port,
                "directory": one.directory,
                "log": one.log,
            }
            for one in topology.instances
        ]
    }


def answer(session, topology, request):
    if "start" in request:
        return start(session, topology, request["start"])
    return {"path": (find_server(request["find"]) or [""])[0]}


def main():
    with Session() as session:
        topology = Topology(sys.argv[1] if len(sys.argv) > 1 else session.make_temp_directory())
        print(json.dumps({"directory": topology.directory}), flush=True)
        for line in sys.stdin:
            try:
                reply = answer(session, topology, json.loads(line))
            except Failure as failure:
                reply = {"error": str(failure)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
