"""Campaigns over executors: their stores, and what becomes of lost workers."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sinnet
from sinnet import _campaign

from .conftest import SMALL, files

RATES = {"link.server-client.rate": ["2Mbit/s", "4Mbit/s"]}


def campaign(store: Path, seeds: int = 8, **sweep: list[str]) -> sinnet.Campaign:
    scenario = sinnet.Scenario.from_toml(SMALL, "small.toml")
    return sinnet.Campaign(scenario, seeds, sweep or RATES, store=store)


@pytest.fixture(scope="module")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The store of one process, made without any executor."""
    store = tmp_path_factory.mktemp("one") / "store"
    sinnet.Scenario.from_toml(SMALL, "small.toml").sweep(RATES).run(8, workers=1, store=store, progress=False)
    return files(store)


@pytest.fixture
def dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_processes_make_the_same_store(tmp_path: Path, one_process: dict[str, bytes]) -> None:
    result = campaign(tmp_path / "store").run(workers=2, batch_s=0.05, progress=False)
    assert files(tmp_path / "store") == one_process
    assert len(result.digests) == 16


def test_a_second_start_runs_what_is_missing(tmp_path: Path, one_process: dict[str, bytes]) -> None:
    campaign(tmp_path / "store", seeds=5).run(workers=2, progress=False)
    whole = campaign(tmp_path / "store")
    assert whole.missing() == [5, 6, 7, 13, 14, 15]
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "store" / "runs").iterdir()}
    whole.run(workers=2, progress=False)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "not run again"
    assert files(tmp_path / "store") == one_process


def test_one_more_value_runs_only_its_runs(tmp_path: Path) -> None:
    campaign(tmp_path).run(workers=2, progress=False)
    more = campaign(tmp_path, 8, **{"link.server-client.rate": ["2Mbit/s", "4Mbit/s", "3Mbit/s"]})
    assert more.missing() == list(range(16, 24))
    assert len(more.run(workers=2, progress=False).digests) == 24


def test_shards_of_the_command_line_make_the_same_store(
    tmp_path: Path, cli: Callable[..., str], one_process: dict[str, bytes]
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    words = ["sim", "small.toml", "--seeds", 8, "--set", 'sweep.link.server-client.rate=["2Mbit/s", "4Mbit/s"]']
    for number in (1, 2, 3):
        cli(*words, "--out", f"part{number}", "--shard", f"{number}/3", cwd=tmp_path)
    cli("store", "merge", "all", "part1", "part2", "part3", cwd=tmp_path)
    cli(*words, "--out", "all", cwd=tmp_path)
    assert files(tmp_path / "all") == one_process


def test_dask_loses_a_worker_and_nothing_else(tmp_path: Path, dask: Any, one_process: dict[str, bytes]) -> None:
    store = tmp_path / "store"
    victim = next(iter(dask.run(os.getpid).values()))
    killed = threading.Event()

    def kill() -> None:
        while len(list((store / "runs").glob("*.json")) if (store / "runs").exists() else []) < 3:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        killed.set()

    threading.Thread(target=kill, daemon=True).start()
    campaign(store).run(dask.get_executor(pure=False), batch_s=0.02, progress=False)
    assert killed.wait(10)
    assert files(store) == one_process


def test_a_lost_process_is_replaced(tmp_path: Path, one_process: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first worker of a pool is killed once both are there; the pool is made anew."""
    pools: list[ProcessPoolExecutor] = []

    class Doomed(ProcessPoolExecutor):
        def __init__(self, *words: Any, **keys: Any) -> None:
            super().__init__(*words, **keys)
            pools.append(self)

        def submit(self, *words: Any, **keys: Any) -> Future[Any]:
            future = super().submit(*words, **keys)
            if len(pools) == 1 and len(self._processes) == 2:
                os.kill(next(iter(self._processes)), signal.SIGKILL)
            return future

    monkeypatch.setattr(_campaign, "ProcessPoolExecutor", Doomed)
    # A batch of its own for each run, however fast this machine is: one batch would need one process only.
    campaign(tmp_path / "store").run(workers=2, batch_s=1e-9, progress=False)
    assert len(pools) > 1
    assert files(tmp_path / "store") == one_process


class Elsewhere(Executor):
    """Workers that change a batch before they run it."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def submit(self, fn: Callable[..., Any], /, *words: Any, **keys: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(dataclasses.replace(words[0], **self.changes)))
        except Exception as error:
            future.set_exception(error)
        return future


def test_a_worker_of_another_version_is_told(tmp_path: Path) -> None:
    with pytest.raises(sinnet.StoreError, match="another build of sinnet"):
        campaign(tmp_path).run(Elsewhere(version="0.0.1"), progress=False)


def test_workers_that_write_elsewhere_are_told(tmp_path: Path) -> None:
    with pytest.raises(sinnet.StoreError, match="a file system that all workers share"):
        campaign(tmp_path / "here").run(Elsewhere(store=str(tmp_path / "there")), progress=False)


def test_an_executor_that_always_loses_ends(tmp_path: Path) -> None:
    class Losing(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *words: Any, **keys: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with Losing() as losing, pytest.raises(sinnet.SinnetError, match="workers are lost"):
        campaign(tmp_path).run(losing, progress=False)


def test_a_controller_goes_along(tmp_path: Path) -> None:
    from .test_controllers import Reno

    scenario = sinnet.Scenario.from_toml(SMALL).set("flow.tcp.congestion", Reno)
    with ThreadPoolExecutor(2) as threads:
        result = sinnet.Campaign(scenario, 4, store=tmp_path).run(threads, batch_s=0.01, progress=False)
    known = sinnet.Scenario.from_toml(SMALL).set("flow.tcp.congestion", "sack").run(4, progress=False)
    assert result.digests == known.digests


#: 10,000 runs over 4 workers of which one is killed: minutes. `pytest -m long` runs it, and prints what it took.
@pytest.mark.long
def test_ten_thousand_runs(tmp_path: Path, cli: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    text = SMALL.replace('"4s"', '"60s"')
    (tmp_path / "long.toml").write_text(text)
    delays = [f"{5 * number}ms" for number in range(1, 11)]
    scenario = sinnet.Scenario.from_toml(text, "long.toml")
    ours = sinnet.Campaign(scenario, 1000, {"link.server-client.delay": delays}, store=tmp_path / "dask")
    workers = 4

    # Of this process and of all of its children that have ended, the one that was killed included.
    def cpu() -> float:
        return sum(os.times()[:4])

    spent, begin = -cpu(), time.monotonic()
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill() -> None:
            runs = tmp_path / "dask" / "runs"
            while not runs.exists() or len(list(runs.iterdir())) < 5000:
                time.sleep(0.5)
            os.kill(pids[0], signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        ours.run(client.get_executor(pure=False), progress=False)
        more = sinnet.Campaign(scenario, 1000, {"link.server-client.delay": [*delays, "55ms"]}, store=tmp_path / "dask")
        assert more.missing() == list(range(10_000, 11_000))
    spent, wall = spent + cpu(), time.monotonic() - begin
    cores = min(workers, os.cpu_count() or 1)
    with capsys.disabled():
        print(f"\n10,000 runs: {wall:.0f} s on {cores} cores, {spent:.0f} s of processor time: {wall * cores / spent:.2f}")
    sweep = f"sweep.link.server-client.delay={json.dumps(delays)}"
    words = ["sim", "long.toml", "--seeds", 1000, "--set", sweep]
    begin = time.monotonic()
    cli(*words, "--out", "one", cwd=tmp_path)
    with capsys.disabled():
        print(f"the command line on all cores: {time.monotonic() - begin:.0f} s")
    theirs = files(tmp_path / "one")
    assert {name: data for name, data in files(tmp_path / "dask").items()} == theirs
    for number in range(1, 65):
        cli(*words, "--out", f"part{number}", "--shard", f"{number}/64", cwd=tmp_path)
    cli("store", "merge", "all", *[f"part{number}" for number in range(1, 65)], cwd=tmp_path)
    cli(*words, "--out", "all", cwd=tmp_path)
    assert files(tmp_path / "all") == theirs


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    program = tmp_path / "run.py"
    program.write_text(f"""
import sinnet
if __name__ == "__main__":
    scenario = sinnet.Scenario.from_toml({SMALL!r}).set("duration", "60s")
    print("begun", flush=True)
    sinnet.Campaign(scenario, 20_000, store={str(tmp_path / "store")!r}).run(workers=2, batch_s=1000, progress=False)
""")
    process = subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    runs = tmp_path / "store" / "runs"
    end = time.monotonic() + 180  # Two processes begin, and import the package.
    while time.monotonic() < end and not (runs.exists() and len(list(runs.glob("*.json"))) > 3):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors and process.returncode != 0
    assert len(list(runs.glob("*.json"))) > 3
