"""The campaign of losses holds for a few seeds, and its judge sees what it looks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest

from decoder.model import Frame, FrameFlags, Gap
from tests.hostile import judge as judging
from tests.hostile.harm import HARMLESS, HARMS, SHAPES, Harmed, harm, renumber
from tests.hostile.judge import Verdict, judge
from tests.hostile.loss import CAPTURES, CAPTURES_OF, MONGODB, RECALL, main, run, truth

pytestmark = pytest.mark.slow

SMALL = "version_negotiation"

Items = list[Frame | Gap]


@pytest.mark.parametrize("seed", range(2 * len(HARMS)))
def test_true_under_loss(seed: int) -> None:
    """Which capture and which harm follows from the seed; a harm has its turn on two captures."""
    _, _, what, verdict = run(seed * 37 % (len(HARMS) * len(CAPTURES)))
    assert verdict.faults == [], what


@pytest.mark.parametrize("seed", range(2 * len(HARMS)))
def test_true_under_loss_of_mongodb(seed: int) -> None:
    _, _, what, verdict = run(seed * 37 % (len(HARMS) * len(CAPTURES_OF[MONGODB])), MONGODB)
    assert verdict.faults == [], what


@pytest.mark.parametrize("name", [SMALL, "mongodb/snappy", "mongodb/old_opcodes"])
def test_recall_over_captures_and_harms(name: str) -> None:
    total = Verdict()
    for seed in range(2 * len(HARMS)):
        total.add(judge(truth(name), harm(truth(name).packets, seed)))
    assert total.faults == []
    assert total.recovered >= RECALL * total.whole


@pytest.mark.parametrize("name", sorted(HARMLESS))
@pytest.mark.parametrize("shape", SHAPES)
def test_what_does_no_harm_costs_nothing(name: str, shape: str) -> None:
    before = renumber(Random(1), SHAPES[shape](Random(1), truth(SMALL).packets))
    verdict = judge(truth(SMALL), Harmed(shape, (name,), before, HARMS[name](Random(1), before)))
    assert verdict.faults == []
    assert (verdict.recovered, verdict.paired, verdict.bytes_lost) == (verdict.whole, verdict.pairs, 0)


def test_harm_follows_from_its_seed() -> None:
    packets = truth(SMALL).packets
    assert harm(packets, 7) == harm(packets, 7)
    assert harm(packets, 7) != harm(packets, 18)
    assert {name for seed in range(11) for name in harm(packets, seed).harms[:1]} == set(HARMS)


def _first(items: Iterable[Frame | Gap], direction: str) -> Frame:
    return next(i for i in items if isinstance(i, Frame) and i.direction == direction and i.seq == 1)


def _with(items: Items, direction: str, **changes: object) -> Items:
    frame = _first(items, direction)
    return [replace(item, **changes) if item is frame else item for item in items]  # type: ignore[arg-type]


TAMPERED: dict[str, tuple[str, Callable[[Items], Items]]] = {
    "another byte": ("false frame", lambda items: _with(items, "request", frame=_first(items, "response").frame)),
    "another time": ("false frame", lambda items: _with(items, "response", ts=_first(items, "response").ts + 1)),
    "another size": ("false frame", lambda items: _with(items, "request", size=_first(items, "request").size + 1)),
    "called cut off": ("false frame", lambda items: _with(items, "request", flags=int(FrameFlags.TRUNCATED))),
    "twice": ("false frame", lambda items: [*items, _first(items, "request")]),
    "left out": ("bytes not accounted for", lambda items: [i for i in items if i is not _first(items, "request")]),
    "the wrong request": (
        "wrong pair", lambda items: _with(items, "response", exchange_id=items[0].exchange_id),  # type: ignore[union-attr]
    ),
    "no request": ("not paired and not flagged", lambda items: _with(items, "response", exchange_id="none")),
    "another api": ("wrong api", lambda items: _with(items, "response", api_key=99)),
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERED)
def test_the_judge_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    fault, tamper = TAMPERED[how]
    read = judging.read
    monkeypatch.setattr(judging, "read", lambda packets: tamper(read(packets)))
    packets = truth(SMALL).packets
    assert any(found.startswith(fault) for found in judge(truth(SMALL), Harmed("", (), packets, packets)).faults)


@pytest.mark.parametrize(
    "arguments",
    [["--from", str(5 + 11 * CAPTURES.index(SMALL))], ["--protocol", MONGODB]],
    ids=["kafka", MONGODB],
)
def test_as_a_program(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["--seeds", "2", *arguments]) == 0
    assert "100.0000%" in capsys.readouterr().out
