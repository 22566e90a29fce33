# Many downloads at once. `serve PORT FILE`: a server that sends the file to whoever connects, and closes.
# `fetch HOST PORT COUNT SHA256 COPY SECONDS`: a client that connects COUNT times at once, writes what arrives to COPY, and
# prints the times of the first byte and the last, and how many of the files were what they should be.
import asyncio
import hashlib
import pathlib
import resource
import socket
import sys
import time

BACKLOG = 4096


async def serve(port, file):
    data = pathlib.Path(file).read_bytes()

    async def send(_, writer):
        try:
            writer.write(data)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except OSError:
            pass  # The client sees it too, and counts it.

    listener = socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    await (await asyncio.start_server(send, sock=listener, backlog=BACKLOG)).serve_forever()


async def fetch(host, port, count, digest, copy, seconds):
    begin = time.monotonic()
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    times = []

    async def one(file):
        sha256 = hashlib.sha256()
        try:
            reader, writer = await asyncio.open_connection(address[0], port, family=family)
            while data := await reader.read(65536):
                now = time.monotonic() - begin
                times[:] = [times[0] if times else now, now]
                sha256.update(data)
                file.write(data)
            writer.close()
        except OSError:
            return False
        return sha256.hexdigest() == digest

    with open(copy, "wb", buffering=0) as file:
        tasks = [asyncio.create_task(one(file)) for _ in range(count)]
        done, _ = await asyncio.wait(tasks, timeout=seconds)
        complete = sum(task.result() for task in done)
    print(*(times or [0, 0]), complete, flush=True)


resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
what, *rest = sys.argv[1:]
if what == "serve":
    asyncio.run(serve(int(rest[0]), rest[1]))
else:
    host, port, count, digest, copy, seconds = rest
    asyncio.run(fetch(host, int(port), int(count), digest, copy, float(seconds)))
