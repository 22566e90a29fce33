"""Controllers and schedulers in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import sinnet
from sinnet import Ack, Controller, Loss, Packet, PathView, Round, Scheduler, Window


class Reno(Controller):
    """RFC 5681 §3.1, as `crates/congestion/src/rules/new_reno.rs` has it."""

    def on_ack(self, ack: Ack) -> float:
        if ack.slow_start:
            return ack.window + ack.bytes
        return ack.window + ack.bytes * ack.mss / ack.window

    def on_loss(self, loss: Loss) -> float:
        return loss.flight / 2.0


class Lia(Controller):
    """RFC 6356 §3: the increase is alpha over the sum of windows, at most Reno's."""

    couples = True

    def on_ack(self, ack: Ack) -> float:
        if ack.slow_start:
            return ack.window + ack.bytes
        usable = [path for path in ack.paths if path.open and path.srtt_s]
        total = sum(path.window for path in usable) or ack.window
        best = max((path.window / (path.srtt_s or 1) ** 2 for path in usable), default=0.0)
        rates = sum(path.window / (path.srtt_s or 1) for path in usable)
        alpha = total * best / rates**2 if rates else 1.0
        return ack.window + ack.bytes * ack.mss * min(alpha / total, 1.0 / ack.window)

    def on_loss(self, loss: Loss) -> float:
        return loss.flight / 2.0


class Fixed(Controller):
    def on_ack(self, ack: Ack) -> float:
        return 10 * ack.mss

    def on_loss(self, loss: Loss) -> float:
        return 10 * loss.mss


class Paced(Fixed):
    def on_ack(self, ack: Ack) -> Window:
        return Window(100 * ack.mss, pacing=2e6)


class Nearest(Scheduler):
    def select(self, packet: Packet, paths: list[PathView]) -> int | None:
        open_ones = [path for path in paths if path.open]
        return min(open_ones, key=lambda path: (path.srtt_s or 0.0, path.index)).index if open_ones else None


@pytest.mark.parametrize("protocol, rust", [("tcp", "sack"), ("mptcp", "newreno"), ("sinnet", "newreno")])
def test_the_same_rule_gives_the_same_digest(
    protocol: str, rust: str, small: sinnet.Scenario, two_paths: sinnet.Scenario
) -> None:
    # Inside a tunnel the first window is that of its path, and the receiver's the limit.
    scenario = small if protocol == "tcp" else two_paths.set("flow.f.protocol", protocol).set("flow.f.initial_window", "2p")
    ours = scenario.set("flow.*.congestion", Reno).run(seeds=3, progress=False)
    theirs = scenario.set("flow.*.congestion", rust).run(seeds=3, progress=False)
    assert ours.digests == theirs.digests
    assert ours.digests != scenario.set("flow.*.congestion", Fixed).run(seeds=3, progress=False).digests, "it was asked"
    assert len(set(ours.digests)) == 3


@pytest.mark.parametrize("protocol", ["mptcp", "sinnet"])
def test_the_same_scheduler_gives_the_same_digest(protocol: str, two_paths: sinnet.Scenario) -> None:
    # Where windows alone are the limit, each path is open only when it is its turn.
    scenario = two_paths.set("flow.f.protocol", protocol).set("flow.f.receiver_window", "20p")
    ours = scenario.set("flow.f.scheduler", Nearest).run(seeds=2, progress=False)
    theirs = scenario.set("flow.f.scheduler", "lowest-rtt").run(seeds=2, progress=False)
    assert ours.digests == theirs.digests
    assert ours.digests != scenario.set("flow.f.scheduler", "round-robin").run(seeds=2, progress=False).digests


def test_a_rule_is_that_of_the_paths_of_sinnet(two_paths: sinnet.Scenario) -> None:
    scenario = two_paths.set("flow.f.protocol", "sinnet")
    ours = scenario.set("flow.f.path_congestion", Reno).run(seeds=2, progress=False)
    theirs = scenario.set("flow.f.path_congestion", "newreno").run(seeds=2, progress=False)
    assert ours.digests == theirs.digests
    assert ours.digests != scenario.run(seeds=2, progress=False).digests, "the usual one"


def test_a_coupled_rule_sees_all_paths(two_paths: sinnet.Scenario) -> None:
    ours = two_paths.set("flow.f.congestion", Lia).run(seeds=3, progress=False)
    lia = two_paths.set("flow.f.congestion", "lia").run(seeds=3, progress=False)
    assert ours.mean("goodput_mbps") == pytest.approx(lia.mean("goodput_mbps"), rel=0.02)
    with pytest.raises(sinnet.ScenarioError, match="couples paths, and TCP has one"):
        two_paths.set("flow.f.protocol", "sinnet").set("flow.f.congestion", Lia).run(1, progress=False)


def test_a_window_is_kept_to(small: sinnet.Scenario) -> None:
    """The closed form: ten packets a round trip of 20 ms would be 6 Mbit/s; over 100 ms they are 1.2."""
    long = small.set("link.*.delay", "50ms").set("link.*.loss", 0).set("duration", "20s")
    result = long.set("flow.tcp.congestion", Fixed).run(seeds=1, progress=False)
    assert result.mean("throughput_mbps", flow="tcp") == pytest.approx(10 * 1500 * 8 / 0.1024 / 1e6, rel=0.03)


def test_a_pace_is_kept_to(small: sinnet.Scenario) -> None:
    # The pace is there with the first answer; the first window before that fits the queue.
    scenario = small.set("link.*.loss", 0).set("duration", "20s").set("flow.tcp.initial_window", "2p")
    result = scenario.set("flow.tcp.congestion", Paced).run(1, progress=False)
    assert 1.9 < result.mean("throughput_mbps", flow="tcp") <= 2.01
    assert result.mean("losses", flow="tcp") == 0


def test_a_round_sets_the_window(small: sinnet.Scenario) -> None:
    class Rounds(Fixed):
        """Holds on_ack's window; rounds take half of it."""

        def on_ack(self, ack: Ack) -> float:
            return ack.window

        def on_round(self, round: Round) -> float | None:
            assert round.round_min_rtt_s is None or round.round_min_rtt_s >= 0.02
            return 5 * round.mss

    result = small.set("link.*.loss", 0).set("duration", "20s").set("flow.tcp.congestion", Rounds).run(1, progress=False)
    assert result.mean("mean_cwnd", flow="tcp") == pytest.approx(5, rel=0.05)


def test_each_flow_and_run_has_its_own(small: sinnet.Scenario) -> None:
    class Counting(Reno):
        made = 0

        def __init__(self) -> None:
            type(self).made += 1
            self.acks = 0

        def on_ack(self, ack: Ack) -> float:
            self.acks += 1
            return super().on_ack(ack)

    result = small.set("flow.tcp.count", 3).set("flow.tcp.congestion", Counting).run(seeds=2, progress=False)
    assert Counting.made == 6
    assert len(result.flows) == 6


def test_random_numbers_come_from_the_seed(small: sinnet.Scenario) -> None:
    class Dice(Reno):
        def on_loss(self, loss: Loss) -> float:
            return loss.flight * self.random.uniform(0.4, 0.6)

    scenario = small.set("flow.tcp.congestion", Dice)
    assert scenario.run(2, progress=False).digests == scenario.run(2, progress=False).digests
    assert scenario.run(2, progress=False).digests != small.set("flow.tcp.congestion", Reno).run(2, progress=False).digests


class Raises(Fixed):
    def on_loss(self, loss: Loss) -> float:
        return 1 / 0


class NotANumber(Fixed):
    def on_ack(self, ack: Ack) -> float:
        return float("nan")


class Nothing(Fixed):
    def on_ack(self, ack: Ack) -> float:
        pass  # type: ignore[return]


class Negative(Fixed):
    def on_ack(self, ack: Ack) -> float:
        return -1.0


class Unmakable(Fixed):
    def __init__(self) -> None:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "wrong, cause, said",
    [
        (Raises, ZeroDivisionError, "division by zero"),
        (NotANumber, ValueError, "on_ack returned a window of NaN"),
        (Nothing, TypeError, "on_ack returned None"),
        (Negative, ValueError, "on_ack returned a window of -1"),
        (Unmakable, RuntimeError, "no"),
    ],
)
def test_a_controller_that_fails_ends_the_run(
    wrong: type[Controller], cause: type[Exception], said: str, small: sinnet.Scenario, tmp_path: Path
) -> None:
    scenario = small.set("flow.tcp.congestion", wrong)
    with pytest.raises(sinnet.ControllerError, match=said) as raised:
        scenario.run(seeds=3, seed=5, store=tmp_path / "store", progress=False)
    assert isinstance(raised.value.__cause__, cause)
    assert raised.value.seed == 5
    assert 0 <= raised.value.time_s < 4
    assert str(raised.value).startswith("seed 5, ")
    if cause is ZeroDivisionError:
        assert "return 1 / 0" in str(raised.value), "the traceback"
        assert raised.value.time_s > 0
    assert list((tmp_path / "store" / "runs").iterdir()) == []


@pytest.mark.parametrize("answer, said", [(7, "there is no such path"), ("a", "a path is its index"), (-1, "a path is its index")])
@pytest.mark.parametrize("protocol", ["mptcp", "sinnet"])
def test_a_scheduler_that_fails_ends_the_run(
    answer: object, said: str, protocol: str, two_paths: sinnet.Scenario
) -> None:
    class Wrong(Scheduler):
        version = repr(answer)

        def select(self, packet: Packet, paths: list[PathView]) -> int | None:
            return answer  # type: ignore[return-value]

    with pytest.raises(sinnet.ControllerError, match=said):
        two_paths.set("flow.f.protocol", protocol).set("flow.f.scheduler", Wrong).run(1, progress=False)


def test_a_class_that_lacks_a_method_is_told(small: sinnet.Scenario) -> None:
    class Half(Controller):
        def on_ack(self, ack: Ack) -> float:
            return ack.window

    with pytest.raises(sinnet.SinnetError, match="Half has no on_loss"):
        small.set("flow.tcp.congestion", Half)


def test_a_store_does_not_take_one_controller_for_another(small: sinnet.Scenario, tmp_path: Path) -> None:
    def made(packets: int) -> type[Controller]:
        class Same(Fixed):
            size = packets

            def on_ack(self, ack: Ack) -> float:
                return self.size * ack.mss

        return Same

    def run(controller: type[Controller], store: Path) -> list[str]:
        return small.set("flow.tcp.congestion", controller).run(2, store=store, progress=False).digests

    ten = run(made(10), tmp_path / "a")
    assert run(made(10), tmp_path / "a") == ten, "found again"
    with pytest.raises(sinnet.StoreError, match="other settings"):
        run(made(20), tmp_path / "a")
    swept = small.sweep({"flow.tcp.congestion": [made(10), made(20), Reno]}).run(2, store=tmp_path / "b", progress=False)
    assert swept.digests[:2] == ten and swept.digests[2:4] != ten


def test_without_source_a_version_is_asked_for(small: sinnet.Scenario) -> None:
    text = "class Typed(Fixed):\n    def on_loss(self, loss):\n        return 7 * loss.mss\n"
    space: dict[str, type[Controller]] = {"Fixed": Fixed}
    exec(text, {"Fixed": Fixed}, space)
    with pytest.raises(sinnet.SinnetError, match="an attribute `version`"):
        small.set("flow.tcp.congestion", space["Typed"])
    setattr(space["Typed"], "version", "1")
    assert len(small.set("flow.tcp.congestion", space["Typed"]).run(1, progress=False).digests) == 1
