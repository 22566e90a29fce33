"""What the package costs beside the command line, how fast controllers are, and how long tables take to be DataFrames.

`SINNET=target/release/sinnet python python/benches/overhead.py`; each time is the least of five.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas
import polars

import sinnet

TIMES = 5

DUMBBELL = """
name = "overhead"
duration = "60s"
[[link]]
between = ["server", "client"]
rate = "100Mbit/s"
delay = "20ms"
queue = "1bdp"
[[flow]]
name = "tcp"
count = 4
protocol = "tcp"
from = "server"
to = "client"
start = ["0s", "1s"]
"""


class Reno(sinnet.Controller):
    def on_ack(self, ack: sinnet.Ack) -> float:
        if ack.slow_start:
            return ack.window + ack.bytes
        return ack.window + ack.bytes * ack.mss / ack.window

    def on_loss(self, loss: sinnet.Loss) -> float:
        return loss.flight / 2


class Counting(Reno):
    acks = 0

    def on_ack(self, ack: sinnet.Ack) -> float:
        Counting.acks += 1
        return super().on_ack(ack)


def least(what: Callable[[], object]) -> float:
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        what()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    scenario = sinnet.Scenario.from_toml(DUMBBELL)
    ours = least(lambda: scenario.run(4, workers=1, progress=False))
    program = os.environ.get("SINNET") or shutil.which("sinnet")
    if program:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "overhead.toml"
            path.write_text(DUMBBELL)
            words = [program, "sim", str(path), "--seeds", "4", "--threads", "1", "--json"]
            theirs = least(lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL))
        print(f"run: {ours:.3f} s, command line {theirs:.3f} s: {100 * (ours / theirs - 1):+.1f} %")

    single = scenario.set("flow.tcp.count", 1)
    counted = single.set("flow.tcp.congestion", Counting)
    counted.run(1, progress=False)
    python = least(lambda: single.set("flow.tcp.congestion", Reno).run(1, progress=False))
    rust = least(lambda: single.set("flow.tcp.congestion", "sack").run(1, workers=1, progress=False))
    print(
        f"controller: {Counting.acks} calls in {python:.3f} s, {Counting.acks / python:,.0f} a second with the simulation around "
        f"them; the same in Rust {rust:.3f} s; a call {1e6 * (python - rust) / Counting.acks:.2f} us"
    )

    result = single.set("flow.tcp.count", 20).run(10, interval="12ms", progress=False)
    rows = len(result.series("flows"))
    for name, read in (
        ("polars", lambda: polars.DataFrame(result.series("flows"))),
        ("pandas", lambda: result.series("flows").to_pandas()),
        ("pandas.from_arrow", lambda: pandas.DataFrame.from_arrow(result.series("flows"))),
    ):
        try:
            print(f"{name}: {rows:,} rows in {least(read):.3f} s")
        except AttributeError:
            print(f"{name}: not in this version")


if __name__ == "__main__":
    main()
