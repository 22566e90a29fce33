"""Scenarios and results beside the command line's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import sinnet

from .conftest import SMALL, files

Cli = Callable[..., str]


def test_results_are_the_command_lines(small: sinnet.Scenario, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    said = json.loads(
        cli("sim", tmp_path / "small.toml", "--seeds", 4, "--set", "flow.tcp.congestion=cubic", "--json")
    )
    result = small.set("flow.tcp.congestion", "cubic").run(seeds=4, progress=False)
    assert result.digests == [run["digest"] for run in said["runs"]]
    ours = result.to_dict()
    assert ours["summary"] == said["summary"]
    assert ours["version"] == said["version"]
    flow = said["summary"]["flows"][0]["goodput_mbps"]
    assert result.mean("goodput_mbps", flow="tcp") == flow["mean"]
    low, high = result.interval("goodput_mbps", flow="tcp")
    assert (high - low) / 2 == pytest.approx(flow["ci95"], rel=1e-12)


def test_a_store_is_the_command_lines_byte_for_byte(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    sweep = ["--set", 'sweep.link.server-client.rate=["2Mbit/s", "4Mbit/s"]']
    file = os.fspath(tmp_path / "small.toml")
    cli("sim", file, "--seeds", 3, *sweep, "--out", tmp_path / "theirs")
    scenario = sinnet.Scenario.load(file).sweep({"link.server-client.rate": ["2Mbit/s", "4Mbit/s"]})
    scenario.run(seeds=3, store=tmp_path / "ours", progress=False)
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
    # Each goes on from the other's.
    more = json.loads(cli("store", "missing", file, "--seeds", 3, *sweep, "--out", tmp_path / "ours", "--json"))
    assert more["missing"] == []
    result = scenario.run(seeds=3, store=tmp_path / "theirs", progress=False)
    assert all(run["cpu_s"] == 0.0 for run in result.to_dict()["runs"]), "all were found"


def test_values_are_as_on_the_command_line(small: sinnet.Scenario) -> None:
    changed = small.set("duration", "2s").set("flow.tcp.packet_size", 1200).set("flow.tcp.start", ["0s", "0.5s"])
    text = changed.to_toml()
    assert 'duration = "2s"' in text and "packet_size = 1200" in text and "0.5s" in text
    assert 'duration = "4s"' in small.to_toml(), "the first is as it was"
    assert changed.run(seeds=1, progress=False).to_dict()["runs"][0]["virtual_s"] == 2.0


def test_a_sweep_takes_the_place_of_one(small: sinnet.Scenario) -> None:
    swept = small.sweep(duration=["1s", "2s"]).sweep(duration=["3s"])
    result = swept.run(seeds=2, progress=False)
    assert [run["virtual_s"] for run in result.to_dict()["runs"]] == [3.0, 3.0]
    assert result.runs.to_dict()["duration"] == [3.0, 3.0], "seconds"


def test_a_dict_is_a_scenario() -> None:
    scenario = sinnet.Scenario.from_dict(
        {
            "name": "small",
            "duration": "4s",
            "link": [
                {"between": ["server", "client"], "rate": "5Mbit/s", "delay": "10ms", "queue": "1bdp", "loss": 0.002}
            ],
            "flow": [{"name": "tcp", "protocol": "tcp", "from": "server", "to": "client", "start": ["0s", "1s"]}],
        }
    )
    assert scenario.run(2, progress=False).digests == sinnet.Scenario.from_toml(SMALL).run(2, progress=False).digests


@pytest.mark.parametrize(
    "old, new",
    [('rate = "5Mbit/s"', 'rate = "0Mbit/s"'), ("loss =", "losss ="), ('name = "tcp"', 'name = "tcp"\ncongestion = "cubik"')],
)
def test_an_error_is_the_command_lines(old: str, new: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace(old, new))
    told = cli("sim", path, check=False)
    with pytest.raises(sinnet.ScenarioError) as raised:
        sinnet.Scenario.load(path).run(1, progress=False)
    assert str(raised.value) in told
    assert f":{raised.value.line}:{raised.value.column}: {raised.value.message}" in told


def test_an_assignment_that_leads_nowhere_is_told(small: sinnet.Scenario) -> None:
    with pytest.raises(sinnet.ScenarioError, match='no flow "tpc"') as raised:
        small.set("flow.tpc.congestion", "cubic")
    assert raised.value.help == "did you mean flow.tcp?"


def test_ctrl_c_stops_within_a_second_and_keeps_what_is_finished(tmp_path: Path) -> None:
    program = f"""
import sinnet
scenario = sinnet.Scenario.from_toml({SMALL!r}).set("duration", "60s")
print("begun", flush=True)
scenario.run(seeds=100_000, workers=2, store={str(tmp_path / "store")!r}, progress=False)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    runs = tmp_path / "store" / "runs"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (runs.exists() and len(list(runs.glob("*.json"))) > 2):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=30)
    # A second of ours, and what a loaded machine takes to end a process.
    assert time.monotonic() - begin < 3.0
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    kept = list(runs.glob("*.json"))
    assert len(kept) > 2
    ends = [json.loads(path.read_text())["result"]["virtual_s"] for path in kept]
    assert ends == pytest.approx([60.0] * len(kept))


def test_a_store_of_something_else_is_refused(small: sinnet.Scenario, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(sinnet.StoreError, match="holds no campaign"):
        small.run(1, store=tmp_path, progress=False)
    small.run(1, store=tmp_path / "store", progress=False)
    header = tmp_path / "store" / "campaign.json"
    header.write_text(header.read_text().replace("sinnet-campaign/1", "sinnet-campaign/9"))
    with pytest.raises(sinnet.StoreError, match="its format is"):
        small.run(1, store=tmp_path / "store", progress=False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_what_cannot_be_written_is_told(small: sinnet.Scenario, tmp_path: Path) -> None:
    (tmp_path / "summary_flows.parquet").symlink_to("/dev/full")
    with pytest.raises(OSError, match="summary_flows.parquet"):
        small.run(1, progress=False).to_parquet(tmp_path)


def test_fairness_is_the_command_lines(two_paths: sinnet.Scenario, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(two_paths.to_toml())
    said = cli("fairness", tmp_path / "two.toml", "--seeds", 2, "--json")
    found = sinnet.fairness(two_paths, seeds=2, progress=False)
    assert found.data == json.loads(said)


def test_papers_are_the_command_lines(cli: Cli, tmp_path: Path) -> None:
    name = min(sinnet.papers.experiments(), key=len)
    with pytest.raises(sinnet.SinnetError, match="no experiment is called"):
        sinnet.papers.run("nothing", store=tmp_path / "none", progress=False)
    assert json.loads(cli("papers", "list", "--json"))[0]["id"] in sinnet.papers.experiments()
    assert name
