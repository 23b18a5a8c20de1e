"""The campaign sees what it looks for and continues where it stopped."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from decoder.redact import redact
from tests.hostile import planted, portion, portions
from tests.hostile.blocks import BLOCK, block
from tests.hostile.planted import CREDENTIAL_NEEDLES, PAYLOAD_NEEDLES, left_in

pytestmark = pytest.mark.slow

SEED = 5


@pytest.mark.parametrize("protocol", ["kafka", "mongodb"])
def test_a_block_is_the_same_each_time_and_has_canaries(protocol):
    frames = block(protocol, SEED, 3)
    assert frames == block(protocol, SEED, 3) != block(protocol, SEED, 4)
    assert len(frames) == BLOCK
    assert sum(left_in(frame.data, is_full=False) for frame in frames) > BLOCK / 20


def test_a_portion_reads_every_frame_of_both_protocols(tmp_path):
    found = portion.Portion(SEED, 0, tmp_path)
    found.run(2 * BLOCK, lambda _: None)
    assert found.frames == 2 * BLOCK
    assert set(found.by_kernel) == {"kafka", "mongodb"}
    assert (found.found[portion.CRASH], found.found[portion.DIFFERENCE]) == (0, 0)


@pytest.mark.parametrize("broken", ["redact", "check"])
def test_what_raises_is_a_crash_and_is_written_down(tmp_path, monkeypatch, broken):
    def raises(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(portion, broken, raises)
    found = portion.Portion(SEED, 0, tmp_path)
    found.run(BLOCK, lambda _: None)
    assert found.found[portion.CRASH] == BLOCK
    assert len(list(tmp_path.iterdir())) == portion.MOST_WRITTEN
    assert block("kafka", SEED, 0)[0].data.hex() in (tmp_path / f"kafka-crashes-{SEED}-0-1.txt").read_text()


@pytest.mark.parametrize("index", [0, 1])
def test_frames_that_are_stored_as_they_came_are_leaks(tmp_path, monkeypatch, index):
    monkeypatch.setattr(portion, "redact", lambda frame, _key: frame)
    found = portion.Portion(SEED, index, tmp_path)
    found.run(BLOCK, lambda _: None)
    assert found.found[portion.LEAK] > BLOCK / 50


def test_a_kernel_that_redacts_otherwise_is_a_difference(tmp_path, monkeypatch):
    monkeypatch.setattr(portion.KafkaBulk, "sealed", staticmethod(lambda frame: frame))
    found = portion.Portion(SEED, 0, tmp_path)
    found.run(BLOCK, lambda _: None)
    assert found.found[portion.DIFFERENCE] > 0


def test_every_planted_frame_is_clean_under_every_policy():
    """Without any mutation nothing is left, so that what the campaign finds comes of mutations."""
    left = Counter()
    for policy in portion.POLICIES:
        for sample in planted.kafka():
            asked = portion.Asked(sample.data, sample.direction, sample.api_key, sample.api_version)
            given = portion._as_landed("kafka", asked, portion.POLICIES.index(policy))
            needles = CREDENTIAL_NEEDLES if policy == "full" else CREDENTIAL_NEEDLES + PAYLOAD_NEEDLES
            stored = redact(given, portion.KEY)
            left[sample.api_key] += any(one in stored.frame for one in needles)
    assert not +left


def test_it_goes_on_where_it_was(tmp_path, capsys):
    results = tmp_path / "results.jsonl"
    asked = ["--seed", str(SEED), "--portion", str(BLOCK), "--results", str(results)]
    portions.main([*asked, "--frames", str(BLOCK)])
    portions.main([*asked, "--frames", str(2 * BLOCK)])
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(line["number"], line["frames"]) for line in lines] == [(0, BLOCK), (1, BLOCK)]
    assert "1 of 2 portions" in capsys.readouterr().out
