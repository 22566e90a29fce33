"""Tables through Arrow's interface, as others read them."""

from __future__ import annotations

from pathlib import Path

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import sinnet


def test_all_readers_see_the_same(small: sinnet.Scenario) -> None:
    result = small.sweep({"flow.tcp.congestion": ["cubic", "newreno"]}).run(seeds=3, progress=False, interval="50ms")
    for table in (result.runs, result.flows, result.links, result.summary, result.series("flows"), result.series("paths")):
        arrow, frame = pyarrow.table(table), polars.DataFrame(table)
        assert arrow.num_rows == len(table) == frame.height
        assert arrow.column_names == table.columns == frame.columns
        data = table.to_dict()
        assert arrow.to_pydict() == data
        assert frame.to_dict(as_series=False) == data
        assert list(table.to_pandas().columns) == table.columns
    assert result.flows.to_dict()["flow.tcp.congestion"] == ["cubic"] * 3 + ["newreno"] * 3


def test_the_summary_is_made_of_the_runs(small: sinnet.Scenario) -> None:
    result = small.run(seeds=5, progress=False)
    summary = result.summary.to_pandas()
    row = summary[(summary.of == "flow") & (summary.metric == "goodput_mbps")]
    flows = result.flows.to_pandas()
    assert row["mean"].item() == pytest.approx(flows.goodput_mbps.mean(), rel=1e-12)
    assert row["sd"].item() == pytest.approx(flows.goodput_mbps.std(ddof=1), rel=1e-9)
    # The table of Student's distribution: t(0.975, 4) = 2.7764.
    assert row["ci95"].item() == pytest.approx(2.7764 * flows.goodput_mbps.std(ddof=1) / 5**0.5, rel=1e-4)


def test_paths_have_rows_where_there_are_some(two_paths: sinnet.Scenario, small: sinnet.Scenario) -> None:
    result = two_paths.run(seeds=2, progress=False)
    paths, flows = result.paths.to_pandas(), result.flows.to_pandas()
    assert list(paths.path) == [0, 1, 0, 1]
    sums = paths.groupby("seed").throughput_mbps.sum()
    assert list(sums) == pytest.approx(list(flows.throughput_mbps), rel=1e-9)
    assert len(small.run(seeds=1, progress=False).paths) == 0


def test_a_store_has_the_series_that_memory_has(two_paths: sinnet.Scenario, tmp_path: Path) -> None:
    scenario = two_paths.set("duration", "2s").sweep({"flow.f.congestion": ["lia", "olia"]})
    stored = scenario.run(seeds=2, store=tmp_path, interval=0.05, progress=False)
    kept = scenario.run(seeds=2, interval="50ms", progress=False)
    for of in ("flows", "paths", "links"):
        assert stored.series(of).to_dict() == kept.series(of).to_dict()
        read = pyarrow.parquet.ParquetDataset(tmp_path / of).read().to_pandas()
        assert len(read) == len(kept.series(of))
    with pytest.raises(sinnet.SinnetError, match="have no series"):
        scenario.run(seeds=1, progress=False).series()


def test_parquet_files_are_those_tables(small: sinnet.Scenario, tmp_path: Path) -> None:
    result = small.run(seeds=2, progress=False)
    result.to_parquet(tmp_path / "out")
    read = pandas.read_parquet(tmp_path / "out" / "summary_flows.parquet")
    assert list(read.columns) == result.flows.columns
    assert list(read.goodput_mbps) == result.flows.to_dict()["goodput_mbps"]
    assert list(pandas.read_parquet(tmp_path / "out" / "summary.parquet").digest) == result.digests


def test_a_figure_has_the_means_and_their_bands(small: sinnet.Scenario) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = small.sweep({"link.server-client.rate": ["2Mbit/s", "4Mbit/s"]}).run(3, progress=False, interval="1s")
    axes = result.plot("goodput_mbps")
    (line,) = axes.get_lines()
    means = [result.mean("goodput_mbps", flow="tcp", **{"link.server-client.rate": rate}) for rate in (2e6, 4e6)]
    assert list(line.get_ydata()) == means
    assert list(line.get_xdata()) == [2e6, 4e6]
    low, high = result.interval("goodput_mbps", flow="tcp", **{"link.server-client.rate": 2e6})
    corners = axes.collections[0].get_paths()[0].vertices
    assert min(y for x, y in corners if x == 2e6) == pytest.approx(low)
    assert max(y for x, y in corners if x == 2e6) == pytest.approx(high)
    assert len(result.plot("cwnd_packets", of="paths", x="time_s").get_lines()) == 2
    assert "goodput" in small.run(1, progress=False)._repr_html_()
