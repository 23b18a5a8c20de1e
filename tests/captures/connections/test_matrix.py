"""Each cause is found in its recording and nothing else is; connections in good order show nothing above info."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.captures.begun.cuts import SHARES, rows_of
from tests.captures.connections.record import HERE
from tests.captures.connections.stories import STORIES
from tests.captures.connections.story import Story
from tests.captures.variants import amid_bursts, joined_after, pcap_of

HEALTHY = [one for one in STORIES if one.name.startswith("healthy_")]


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.name)
def test_a_recording_shows_its_cause_and_nothing_else(story: Story) -> None:
    found = diagnose(read_inputs([str(story.capture(HERE))]), StreamSettings())
    rows = finding_rows(found.findings)
    loud = {(row["rule"], row["subject"]) for row in rows if row["severity"] != "info"}
    quiet = {(row["rule"], row["subject"]) for row in rows if row["severity"] == "info"}
    assert loud == story.named(story.findings)
    assert quiet >= story.named(story.info)


@pytest.mark.parametrize("story", HEALTHY, ids=lambda one: one.name)
def test_who_comes_late_to_healthy_connections_gets_no_alarm(story: Story) -> None:
    """From 25, 50 and 75 % of the time on, and within two bursts of packets."""
    whole = pcap_of(story.capture(HERE))
    for rest in (*(joined_after(whole, share) for share in SHARES), *amid_bursts(whole, 2)):
        assert [(row["rule"], row["subject"]) for row in rows_of(rest) if row["severity"] != "info"] == []


def test_a_group_that_stops_as_its_coordinators_connection_is_dropped_is_one_incident() -> None:
    (story,) = (one for one in STORIES if one.name == "coordinator_cut")
    found = diagnose(read_inputs([str(story.capture(HERE))]), StreamSettings())
    (incident,) = found.incidents.to_pylist()
    assert "receives nothing more on 1 connection of carrier" in incident["headline"]
    assert "stood still" not in incident["headline"]


def test_healthy_recordings_declare_nothing_and_others_a_cause() -> None:
    assert all(bool(one.findings) != one.name.startswith("healthy_") for one in STORIES)


def test_recordings_stay_small() -> None:
    sizes = [one.capture(HERE).stat().st_size for one in STORIES]
    assert max(sizes) < 150_000
    assert sum(sizes) < 1_200_000
