"""Congestion controls and schedulers in Python."""

from __future__ import annotations

import hashlib
import inspect
import random
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from ._sinnet import Ack, Loss, Packet, Path, PathView, Round, SinnetError, Window

__all__ = ["Ack", "Controller", "Loss", "Packet", "Path", "PathView", "Round", "Scheduler", "Window"]

#: Values of class attributes that are part of what an algorithm is.
_PLAIN = (bool, int, float, str, bytes, tuple, frozenset, type(None))


class Controller(ABC):
    """A congestion control. Each flow of each run has an object of its own, which serves all paths of the flow.

    Windows are in bytes, real numbers above 0; ``ack.mss`` is the payload of a full packet. Slow start below the threshold,
    recovery, timeouts (after which the window is one packet) and undo are the engine's, as for the rules of the registry.

    Class attributes say what a flow has to offer: ``couples = True`` needs several paths, ``reads_delay = True`` the round-trip
    time of nearly every packet. ``version`` may be anything: it tells stored results of one version from those of another where
    the source of the class is not all that decides.

    >>> class Fixed(Controller):
    ...     '''Twenty packets, whatever happens.'''
    ...     def on_ack(self, ack):
    ...         return 20 * ack.mss
    ...     def on_loss(self, loss):
    ...         return 20 * loss.mss
    """

    couples: ClassVar[bool] = False
    reads_delay: ClassVar[bool] = False
    version: ClassVar[str | int | None] = None

    #: Random numbers of this flow, from the run's seed. Others would not be the same in the next run.
    random: random.Random

    @abstractmethod
    def on_ack(self, ack: Ack) -> float | Window:
        """Data were acknowledged outside of recovery, and the window, not the application, was the limit.

        Returns the new window in bytes, or a :class:`Window` with a pace in bit/s. ``ack.bytes`` are new; in slow start at most
        a packet's (RFC 3465).
        """

    @abstractmethod
    def on_loss(self, loss: Loss) -> float | Window:
        """A loss, a mark or a timeout (``loss.cause``), at most once in a window of data.

        Returns the new window in bytes, which is the threshold, too; the threshold is at least two packets.
        """

    def on_round(self, round: Round) -> float | Window | None:
        """A round trip ended outside of recovery: a window in bytes, or None to leave it as it is.

        A :class:`Window` may set the threshold, too.
        """
        return None


class Scheduler(ABC):
    """Gives packets of an MPTCP flow to its paths. Each flow of each run has an object of its own.

    ``needs_arrivals = True``: it compares arrivals by ``delay_s``, ``rate`` and ``free_at_s``, and what a path has still to
    send does not close it.

    >>> class Nearest(Scheduler):
    ...     '''The open path of the least round-trip time.'''
    ...     def select(self, packet, paths):
    ...         open_ones = [path for path in paths if path.open]
    ...         return min(open_ones, key=lambda path: path.srtt_s or 0.0).index if open_ones else None
    """

    needs_arrivals: ClassVar[bool] = False
    version: ClassVar[str | int | None] = None

    @abstractmethod
    def select(self, packet: Packet, paths: list[PathView]) -> int | None:
        """The index of an open path, or None to keep the packet until something changes."""


def is_algorithm(value: object) -> bool:
    """Whether it is a class that a scenario can name."""
    return isinstance(value, type) and issubclass(value, (Controller, Scheduler))


def name_of(algorithm: type) -> str:
    """What a scenario calls a class: its name, and a hash of its source and of its plain attributes.

    A store finds runs by it, so that those of another algorithm are not taken for its own. What functions and modules the class
    uses is not in it: that is what `version` is for.
    """
    if inspect.isabstract(algorithm):
        lacks = " and ".join(sorted(getattr(algorithm, "__abstractmethods__")))
        raise SinnetError(f"{algorithm.__name__} has no {lacks}")
    known = hashlib.sha256()
    for cls in algorithm.__mro__:
        if cls.__module__.startswith("sinnet.") or cls in (object, ABC):
            continue
        parts: list[Any] = [cls.__qualname__]
        for key, value in sorted(vars(cls).items()):
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if inspect.isfunction(function):
                parts.append((key, _source(cls, function)))
            elif isinstance(value, _PLAIN) and not key.startswith("__"):
                parts.append((key, value))
        known.update(repr(parts).encode())
    return f"python:{algorithm.__name__}@{known.hexdigest()[:12]}"


def _source(cls: type, function: Callable[..., object]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        if getattr(cls, "version", None) is None:
            raise SinnetError(
                f"the source of {cls.__name__}.{function.__name__} cannot be read here: give the class an attribute `version`, "
                "which changes whenever the class does"
            ) from None
        return ""
