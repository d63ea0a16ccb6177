# SPDX-License-Identifier: MIT
"""Relays TCP connections from one address to another, and delays each piece of data in a direction.

Usage: delay_relay.py LISTEN-ADDRESS PORT SERVER-ADDRESS PORT MILLISECONDS-THERE MILLISECONDS-BACK
"""

import asyncio
import sys


async def relay(reader, writer, delay_s):
    while data := await reader.read(4096):
        await asyncio.sleep(delay_s)
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(address, port, server, server_port, there_ms, back_ms):
    async def connected(reader, writer):
        server_reader, server_writer = await asyncio.open_connection(server, int(server_port))
        await asyncio.gather(
            relay(reader, server_writer, int(there_ms) / 1000), relay(server_reader, writer, int(back_ms) / 1000)
        )

    listening = await asyncio.start_server(connected, address, int(port))
    print("listening", flush=True)
    await listening.serve_forever()


asyncio.run(main(*sys.argv[1:]))
