"""What tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import sinnet

SMALL = """\
name = "small"
duration = "4s"
[[link]]
between = ["server", "client"]
rate = "5Mbit/s"
delay = "10ms"
queue = "1bdp"
loss = 0.002
[[flow]]
name = "tcp"
protocol = "tcp"
from = "server"
to = "client"
start = ["0s", "1s"]
"""

TWO_PATHS = """\
name = "two paths"
duration = "10s"
[[link]]
between = ["s", "a"]
rate = "5Mbit/s"
delay = "10ms"
queue = "1bdp"
[[link]]
between = ["s", "b"]
rate = "5Mbit/s"
delay = "30ms"
queue = "1bdp"
loss = 0.001
[[link]]
between = ["a", "d"]
[[link]]
between = ["b", "d"]
[[flow]]
name = "f"
protocol = "mptcp"
from = "s"
to = "d"
paths = [["s", "a", "d"], ["s", "b", "d"]]
"""


@pytest.fixture
def small() -> sinnet.Scenario:
    return sinnet.Scenario.from_toml(SMALL)


@pytest.fixture
def two_paths() -> sinnet.Scenario:
    return sinnet.Scenario.from_toml(TWO_PATHS)


@pytest.fixture
def cli() -> Callable[..., str]:
    """The command line of the same sources: SINNET, or the program on the PATH."""
    program = os.environ.get("SINNET") or shutil.which("sinnet")
    if program is None:
        if os.environ.get("SINNET_REQUIRE_TOOLS"):
            pytest.fail("SINNET has to name the program `sinnet`")
        pytest.skip("SINNET does not name the program `sinnet`")

    def run(*words: object, cwd: Path | None = None, check: bool = True) -> str:
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, cwd=cwd)
        if check:
            assert done.returncode == 0, done.stderr
            return done.stdout
        return done.stderr

    return run


def files(store: Path) -> dict[str, bytes]:
    """Every file of a store. What a killed writer left has a hidden name, and nobody reads it."""
    names = [path for path in sorted(store.rglob("*")) if path.is_file() and not path.name.startswith(".unfinished-")]
    return {str(path.relative_to(store)): path.read_bytes() for path in names}
