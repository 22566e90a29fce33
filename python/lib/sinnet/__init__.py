"""Sinnet's laboratory: a fast deterministic simulator of TCP, MPTCP, SCTP and Sinnet over networks.

>>> import sinnet
>>> scenario = sinnet.Scenario.from_toml('''
... name = "one flow"
... duration = "5s"
... [[link]]
... between = ["server", "client"]
... rate = "10Mbit/s"
... delay = "10ms"
... queue = "1bdp"
... [[flow]]
... name = "tcp"
... protocol = "tcp"
... from = "server"
... to = "client"
... ''')
>>> result = scenario.set("flow.tcp.congestion", "cubic").run(seeds=3, progress=False)
>>> len(result.digests)
3
>>> 8.0 < result.mean("goodput_mbps", flow="tcp") < 10.0
True
"""

from . import papers
from ._campaign import Campaign
from ._controller import Ack, Controller, Loss, Packet, Path, PathView, Round, Scheduler, Window
from ._result import Fairness, Result
from ._scenario import Scenario, fairness
from ._sinnet import ControllerError, ScenarioError, SinnetError, StoreError, Table, __version__

__all__ = [
    "Ack",
    "Campaign",
    "Controller",
    "ControllerError",
    "Fairness",
    "Loss",
    "Packet",
    "Path",
    "PathView",
    "Result",
    "Round",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "SinnetError",
    "StoreError",
    "Table",
    "Window",
    "__version__",
    "fairness",
    "papers",
]
