"""How far runs are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm

Watched = Callable[[float, int, int], None]


@contextmanager
def bar(wanted: bool, runs: int, unit: str = "run") -> Iterator[Watched | None]:
    """What to tell of (fraction, finished, runs), if that is wanted; a bar where there is a terminal or a notebook."""
    if not wanted:
        yield None
        return
    with tqdm(total=runs, unit=unit, disable=None, leave=False) as shown:

        def look(_fraction: float, finished: int, _runs: int) -> None:
            shown.update(finished - shown.n)

        yield look
