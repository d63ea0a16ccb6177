# SPDX-License-Identifier: MIT
# redis-py, as applications use it: single commands, pipelines, transactions, Lua scripts, asyncio.
import asyncio
import sys
from contextlib import suppress

import redis
import redis.asyncio

port = int(sys.argv[1])


def commands():
    r = redis.Redis(port=port)
    for i in range(300):
        r.set(f"k{i}", "v" * i)
        r.get(f"k{i}")
        r.hset("h", mapping={"a": i, "b": i})
    r.mset({f"m{i}": i for i in range(50)})
    r.mget([f"m{i}" for i in range(50)])
    r.set("large", "x" * 700000)
    assert len(r.get("large")) == 700000
    r.zadd("z", {f"member{i}": i for i in range(1000)})
    assert len(r.zrange("z", 0, -1)) == 1000
    for key in r.scan_iter(count=50):
        assert key
    with suppress(redis.ResponseError):  # an error is an answer
        r.lpush("h", 1)


def pipelines():
    r = redis.Redis(port=port)
    for _ in range(30):
        with r.pipeline(transaction=False) as p:
            for i in range(100):
                p.set(f"p{i}", "v" * i)
                p.get(f"p{i}")
            p.execute()
    for _ in range(50):
        with r.pipeline(transaction=True) as p:
            p.incr("n").expire("n", 100).lrange("none", 0, 10)
            p.execute()
    with r.pipeline(transaction=False) as p:
        for _ in range(20):
            p.get("large")
        assert sum(len(v) for v in p.execute()) == 20 * 700000


def transactions_with_watch():
    r = redis.Redis(port=port)

    def add(p):
        value = int(p.get("w") or 0)
        p.multi()
        p.set("w", value + 1)

    for _ in range(20):
        r.transaction(add, "w")


async def many():
    r = redis.asyncio.Redis(port=port, max_connections=20)

    async def one(i):
        for k in range(30):
            await r.set(f"a{i}", k)
            await r.get(f"a{i}")

    await asyncio.gather(*(one(i) for i in range(20)))
    await r.close()


commands()
pipelines()
transactions_with_watch()
asyncio.run(many())
