"""Figures with bands of confidence."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from . import _sinnet
from ._sinnet import SinnetError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._result import Result

_KIND = {"total": "total", "flows": "flow", "links": "link"}
#: Columns of a series that tell rows apart, beside the swept keys.
_WHO = {"flows": ["flow"], "paths": ["flow", "path"], "links": ["link"]}


def plot(result: Result, metric: str, of: str, x: str | None, ax: Axes | None) -> Axes:
    """See :meth:`Result.plot`."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots()
    if x == "time_s":
        _series(result, metric, of, ax)
    else:
        _summary(result, metric, of, x, ax)
    ax.set_ylabel(metric)
    return ax


def _summary(result: Result, metric: str, of: str, x: str | None, ax: Axes) -> None:
    if of not in _KIND:
        raise SinnetError(f"there are means of {', '.join(_KIND)}, not of {of!r}")
    table = result.summary.to_dict()
    keys = [key for key in table if key not in ("of", "name", "metric", "mean", "sd", "ci95")]
    numbers = [key for key in keys if table[key] and not isinstance(table[key][0], str)]
    if x is None and numbers:
        x = numbers[0]
    if x is not None and x not in numbers:
        raise SinnetError(f"{x} is no swept key of numbers; those are {', '.join(numbers) or 'none'}")
    lines: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for row, kind in enumerate(table["of"]):
        if kind == _KIND[of] and table["metric"][row] == metric and table["mean"][row] is not None:
            others = [f"{key}={table[key][row]}" for key in keys if key != x]
            label = ", ".join([table["name"][row], *others])
            at = table[x][row] if x is not None else 0.0
            lines[label].append((at, table["mean"][row], table["ci95"][row] or 0.0))
    if not lines:
        raise SinnetError(f"nothing was measured that is called {metric!r}")
    if x is None:
        labels = list(lines)
        points = [lines[label][0] for label in labels]
        ax.bar(labels, [mean for _, mean, _ in points], yerr=[half for *_, half in points], capsize=4)
        ax.tick_params(axis="x", rotation=30)
        return
    for label, points in lines.items():
        _band(ax, label, sorted(points))
    ax.set_xlabel(x)
    ax.legend()


def _series(result: Result, metric: str, of: str, ax: Axes) -> None:
    table = result.series(of).to_dict()
    if metric not in table:
        raise SinnetError(f"the series of {of} have {', '.join(table)}, not {metric!r}")
    place = list(table).index("time_s")
    who = [key for key in list(table)[:place] if key not in ("run", "seed")] + _WHO[of]
    values: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row, value in enumerate(table[metric]):
        if value is not None:
            label = ", ".join(str(table[key][row]) for key in who)
            values[label][table["time_s"][row]].append(value)
    for label, times in values.items():
        _band(ax, label, [_point(time, samples) for time, samples in sorted(times.items())])
    ax.set_xlabel("time_s")
    ax.legend()


def _point(time: float, samples: list[float]) -> tuple[float, float, float]:
    found = _sinnet.estimate(samples)
    mean, _, half = found if found is not None else (float("nan"), None, None)
    return time, mean, half or 0.0


def _band(ax: Any, label: str, points: list[tuple[float, float, float]]) -> None:
    xs = [x for x, _, _ in points]
    (line,) = ax.plot(xs, [mean for _, mean, _ in points], label=label)
    low, high = [mean - half for _, mean, half in points], [mean + half for _, mean, half in points]
    ax.fill_between(xs, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
