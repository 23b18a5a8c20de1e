"""However a batch is divided, what its parts hold for certain, and what they leave, is what all of it holds."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from decoder.model import FrameFlags
from pipeline.analysis.bundle import DERIVED, bundle_of, paired_certainly
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import gathered
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.pairing import completed, exchanges, halves_of, newest, pending
from pipeline.analysis.statements.exchanges import placed
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from pipeline.lake.arrow import with_plain_texts
from pipeline.tables import EXCHANGES, GAPS, OFFSET_EVENTS, PENDING_EXCHANGES, RECORD_BATCHES, STATE_EVENTS
from tests.paths import CAPTURES
from tests.pipeline.analysis.test_pairing import half, table

SETTINGS = StreamSettings()
CLOCKS = ["connection_id", "direction", "seq", "ts", "flags"]
RECORDINGS = ("healthy.pcap", "incidents/lossy.pcap", "incidents/hung.pcap", "mongodb/plain.pcap")


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def _parts(frames: pa.Table, chance: random.Random, count: int) -> list[pa.Table]:
    cuts = sorted(chance.randrange(frames.num_rows + 1) for _ in range(count - 1))
    return [frames.slice(begin, end - begin) for begin, end in zip([0, *cuts], [*cuts, frames.num_rows], strict=True)]


def _apart(parts: list[pa.Table]) -> tuple[pa.Table, pa.Table, int]:
    """Complete exchanges, halves that wait, and how many halves had to be paired by whoever has all of them."""
    certain, left, clocks = [], [], []
    for part in parts:
        complete, rest = paired_certainly(part, SETTINGS)
        certain.append(with_plain_texts(complete))
        left.append(rest)
        clocks.append(newest(part.select(CLOCKS), part.select(CLOCKS).slice(0, 0), -1))
    rest = pa.concat_tables(left)
    paired = exchanges(rest, SETTINGS.response_timeout, SETTINGS.abandon_timeout, pa.concat_tables(clocks))
    return pa.concat_tables([*certain, completed(paired)]), halves_of(pending(paired), rest), rest.num_rows


@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_parts_hold_what_the_whole_holds(recording: str, count: int) -> None:
    frames = fit(decoded(read_inputs([str(CAPTURES / recording)]).frames), PENDING_EXCHANGES)
    whole = exchanges(frames, SETTINGS.response_timeout, SETTINGS.abandon_timeout)
    complete, waiting, left = _apart(_parts(frames, random.Random(count), count))
    assert _sorted(complete) == _sorted(completed(whole))
    assert _sorted(waiting) == _sorted(halves_of(pending(whole), frames))
    assert count < 7 or left > waiting.num_rows, "no exchange was cut in two"


@pytest.mark.parametrize("recording", RECORDINGS)
def test_what_parts_state_is_what_the_whole_states_once_names_are_known(recording: str) -> None:
    frames = fit(decoded(read_inputs([str(CAPTURES / recording)]).frames), PENDING_EXCHANGES)
    whole = exchanges(frames, SETTINGS.response_timeout, SETTINGS.abandon_timeout)
    wanted = gathered(whole, schema_of(GAPS).empty_table())
    complete = completed(whole)
    middle = complete.num_rows // 2
    bundles = [bundle_of(some, ClusterCatalog()) for some in (complete.slice(0, middle), complete.slice(middle))]
    catalog = ClusterCatalog().merged(fact for one in bundles for fact in one.facts)
    assert set(bundles[0].rows) == {one.full_name for one in DERIVED}
    found = {name: pa.concat_tables([one.rows[name] for one in bundles]) for name in bundles[0].rows}
    assert _sorted(found[EXCHANGES.full_name]) == _sorted(fit(wanted.exchanges, EXCHANGES))
    of_kafka = [(OFFSET_EVENTS, wanted.events), (RECORD_BATCHES, wanted.batches), (STATE_EVENTS, wanted.states)]
    for one, rows in of_kafka:
        assert _sorted(placed(found[one.full_name], catalog)) == _sorted(placed(rows, catalog)), one.full_name


def test_only_a_mark_of_the_agent_makes_a_lonely_half_certain() -> None:
    marks = {
        "acks0": ("request", FrameFlags.NO_RESPONSE_EXPECTED), "closed": ("request", FrameFlags.UNANSWERED),
        "orphan": ("response", FrameFlags.ORPHAN_RESPONSE), "next": ("response", FrameFlags.FOLLOWING_RESPONSE),
    }  # fmt: skip
    halves = [
        half(name, direction, number, number, flags=int(flag))
        for number, (name, (direction, flag)) in enumerate(marks.items())
    ]
    # Ten minutes pass on the connection: here the first would be given up, but its answer may be in another part.
    halves += [half("asked", "request", 5, 5), half("late", "request", 2_000, 6), half("other", "response", 3, 7)]
    complete, left = paired_certainly(table(halves), SETTINGS)
    assert set(complete.column("exchange_id").to_pylist()) == set(marks)
    assert set(left.column("exchange_id").to_pylist()) == {"asked", "late", "other"}


def test_an_empty_part_holds_nothing() -> None:
    complete, left = paired_certainly(table([]), SETTINGS)
    assert complete.num_rows == left.num_rows == 0
    assert not any(rows.num_rows for rows in bundle_of(complete, ClusterCatalog()).rows.values())
