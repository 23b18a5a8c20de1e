"""Half-seen, copied or odd connections: no claim but the recording's own, and both ways of reading agree."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from pathlib import Path

import pytest

from tests.captures.connections.outcomes import OF_TCP, PAGE, as_recorded, make, outcome, table
from tests.captures.connections.states import claims, unlike
from tests.captures.connections.story import Story
from tests.captures.connections.twisted import TWISTS, Twist
from tests.pipeline.capture.both_ways import landed_lives

_in_order = attrgetter("connection_id", "seq", "ts")
QUICK = {
    ("nobody_listens", "copies with other addresses"),
    ("tls_at_plaintext", "client's side only"),
    ("tls_at_plaintext", "no FIN, no RST"),
    ("plaintext_at_tls", "server's side only"),
    ("certificate_refused", "ports used again"),
    ("healthy_checks", "opened by both sides"),
    ("controller", "copies with other addresses"),
    ("healthy_idle_at_broker", "sequence numbers wrap"),
    ("unanswered", "VLAN copies"),
    ("sasl_needed", "no SYN-ACK"),
    ("login_lacking", "no SYN-ACK"),
    ("queue_full", "no SYN-ACK"),
}
"""Those that have been wrong once, and some healthy ones."""


@pytest.mark.parametrize(
    ("story", "twist"),
    [
        pytest.param(
            story, twist, id=f"{story.name}, {twist.name}",
            marks=() if (story.name, twist.name) in QUICK else pytest.mark.proof,
        )
        for story in OF_TCP
        for twist in TWISTS
    ],
)  # fmt: skip
def test_a_twisted_recording_shows_no_other_cause(tmp_path: Path, story: Story, twist: Twist) -> None:
    path = make(story, twist, tmp_path)
    by_packet, by_block = landed_lives(path)
    assert sorted(by_block, key=_in_order) == sorted(by_packet, key=_in_order)
    found = outcome(path, story)
    assert found.claims == set()
    whole = as_recorded(story)
    if twist.hides:
        assert Counter(claims(found.rows, whole.rows)) == Counter()
    else:
        assert found.loud >= found.expected
        assert unlike(found.rows, whole.rows) == Counter()


@pytest.mark.proof
def test_the_page_states_what_is_found() -> None:
    assert table() in PAGE.read_text()
