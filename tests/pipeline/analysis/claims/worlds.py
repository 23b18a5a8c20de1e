"""Worlds made from a recording by removing evidence, and what is claimed in each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.claims.model import Claim, Ground, Half
from pipeline.analysis.claims.table import claims_of
from pipeline.analysis.derive import Derived, derive_from, findings_of, gathered
from pipeline.analysis.fit import schema_of, table_of
from pipeline.analysis.incidents.incidents import judged
from pipeline.analysis.incidents.report import CERTAIN
from pipeline.analysis.pairing import exchanges
from pipeline.analysis.rules.capture.texts import INTERFACE
from pipeline.analysis.rules.case.entities import Known
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.safety.guard import noting
from pipeline.analysis.tables import ADDRESS, Tables
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import EXCHANGES_WITH_BODIES, FRAMES, GAPS, MONGO_COMMANDS
from tests.paths import CAPTURES
from tests.pipeline.analysis.rules import old_server
from tests.pipeline.analysis.rules.connections.doors import doors, each, packets
from tests.pipeline.analysis.rules.connections.poll_stages import polls
from tests.pipeline.analysis.rules.connections.test_full import stalls
from tests.pipeline.analysis.rules.connections.test_mongodb import asks
from tests.pipeline.analysis.rules.connections.test_stuck import sends
from tests.pipeline.analysis.rules.kafka.positions import left_stages
from tests.pipeline.analysis.rules.kafka.positions.back_stages import set_back
from tests.pipeline.analysis.rules.kafka.positions.beyond_stages import beyond, commits_beyond
from tests.pipeline.analysis.rules.kafka.positions.loops import alone, loops, records_again
from tests.pipeline.analysis.rules.kafka.positions.lost_stages import restarted
from tests.pipeline.analysis.rules.kafka.positions.silent_stages import silent
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import (
    commits_nothing,
    never_commits,
    out_of_range,
    owned,
    reads_on,
    refused_once,
    since_refused,
)
from tests.pipeline.analysis.rules.kafka.positions.unseen_stages import gives_away
from tests.pipeline.analysis.rules.kafka.processes.fenced_stages import cannot_begin, commits_elsewhere, fenced
from tests.pipeline.analysis.rules.kafka.progress import owner_stages
from tests.pipeline.analysis.rules.kafka.progress.stale_session import stale
from tests.pipeline.capture.sessions.test_mismatch_text import HTTP_400, KAFKA, conversations
from tests.pipeline.capture.wire import pcap
from tests.pipeline.commands.test_other_protocol import FIN, closing

Row = dict[str, Any]
_SETTINGS = StreamSettings()
_NAMELESS = "an application without name"
"""What findings call a MongoDB client whose handshake is not in the capture."""
LOSS = "capture lost"
"""What the reasons of an incident say where bytes of it were lost."""


@dataclass(frozen=True)
class Stated:
    """A claim of a finding."""

    claim: Claim
    finding: Known
    incident: Row

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about."""
        return self.claim.rule, str(self.finding.row["subject"]), self.claim.says

    @property
    def is_weak(self) -> bool:
        """Whether the incident states that bytes were lost."""
        return self.incident["confidence"] != CERTAIN and LOSS in self.incident["reasoning"]


@dataclass(frozen=True)
class Shown:
    """An exchange as grounds look at it."""

    exchange_id: str
    connection_id: str
    us: int
    caller: str | None
    server: str
    text: str


@dataclass(frozen=True)
class World:
    """Decoded frames (rows of ``bronze.frames``) and gaps, and what is claimed of them."""

    frames: pa.Table
    gaps: pa.Table

    @cached_property
    def derived(self) -> Derived:
        """All that rules read."""
        with noting() as noted:
            paired = exchanges(self.frames, _SETTINGS.response_timeout, _SETTINGS.abandon_timeout)
            found = derive_from(gathered(paired, self.gaps), _SETTINGS, "rules")
        assert noted.errors == ()
        return found

    @cached_property
    def findings(self) -> list[tuple[Known, Row]]:
        """Each finding with its incident."""
        with noting() as noted:
            judgement = judged(findings_of(self.derived, _SETTINGS.findings), (), None, _SETTINGS.findings)
        assert noted.errors == ()
        incidents = {row["incident_id"]: row for row in judgement.incidents}
        return [
            (Known.of(row, rule_named(row["rule"]).subject), incidents[row["incident_id"]])
            for row in judgement.findings
        ]

    @cached_property
    def stated(self) -> dict[tuple[str, str, str], Stated]:
        """All claims, by what they are about."""
        found = (
            Stated(claim, finding, incident)
            for finding, incident in self.findings
            for claim in claims_of(finding.rule)
            if re.search(claim.says, text_of(finding, incident))
        )
        return {one.key: one for one in found}

    def without(self, ids: Collection[str], half: Half = "exchange") -> World:
        """The same as if these exchanges had not happened, or a half of each was not captured."""
        is_one = pc.fill_null(pc.is_in(self.frames.column("exchange_id"), pa.array(sorted(ids), pa.string())), False)
        if half != "exchange":
            is_one = pc.and_(is_one, pc.equal(self.frames.column("direction"), half))
        return World(self.frames.filter(pc.invert(is_one)), self.gaps)

    def losing(self, is_lost: pa.ChunkedArray) -> World:
        """The same if the capture had lost the bytes of some frames."""
        return World(
            self.frames.filter(pc.invert(is_lost)),
            pa.concat_tables([self.gaps, _gap_rows(self.frames.filter(is_lost))]),
        )

    def with_gaps(self, connections: Collection[str]) -> World:
        """The same frames, where further bytes of some connections were lost beside each frame."""
        on_them = pc.is_in(self.frames.column("connection_id"), pa.array(sorted(connections), pa.string()))
        return World(self.frames, pa.concat_tables([self.gaps, _gap_rows(self.frames.filter(on_them))]))

    def evidence(self, ground: Ground, finding: Known) -> list[Shown]:
        """The exchanges of this world that a ground of a finding selects."""
        named = self._names_of(finding)
        return [one for one in self.shown(ground.where) if _names_all(one, ground.names, named)]

    def _names_of(self, finding: Known) -> Mapping[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for kind, name, *_ in finding.entities:
            if name != "?" and not name.startswith(_NAMELESS):
                found[kind].add(name)
        for (_, topic_id), seen in self.derived.catalog.topics.items():
            if seen.value in found["topic"]:
                found["topic"].add(topic_id)
        return found

    @cached_property
    def _shown(self) -> dict[str, list[Shown]]:
        return {}

    def shown(self, where: str) -> list[Shown]:
        """Exchanges by a condition."""
        if where not in self._shown:
            tables = Tables(
                {"found": self.derived.of(EXCHANGES_WITH_BODIES), "asked": self.derived.pending,
                 "commands": self.derived.of(MONGO_COMMANDS)}
            )  # fmt: skip
            try:
                rows = tables.rows(f"""
                    WITH exchanges AS (SELECT * FROM found UNION ALL BY NAME SELECT * FROM asked), callers AS (
                        SELECT connection_id, any_value(client_id) AS known FROM exchanges GROUP BY connection_id
                    )
                    SELECT exchange_id, connection_id, epoch_us(exchanges.ts) AS us,
                        coalesce(application, exchanges.client_id, known) AS caller, {ADDRESS["server"]} AS server,
                        coalesce(request_body, '') || coalesce(response_body, '') AS text
                    FROM exchanges JOIN callers USING (connection_id)
                    LEFT JOIN (SELECT exchange_id, application, command FROM commands) USING (exchange_id)
                    WHERE {where} ORDER BY exchanges.ts, exchange_id
                """)
            finally:
                tables.close()
            self._shown[where] = [Shown(*row) for row in rows]
        return self._shown[where]


def _names_all(one: Shown, kinds: Iterable[str], named: Mapping[str, set[str]]) -> bool:
    return all(not named.get(kind) or _names(one, kind, named[kind]) for kind in kinds)


def _names(one: Shown, kind: str, names: Collection[str]) -> bool:
    match kind:
        case "client":
            return one.caller in names
        case "server":
            return one.server in names
        case _:
            return any(f'"{name}"' in one.text for name in names)


def _gap_rows(frames: pa.Table) -> pa.Table:
    """Rows of ``bronze.gaps`` for frames whose bytes were lost."""
    columns = frames.select(["connection_id", "agent_id", "direction", "seq"])
    columns = columns.append_column("ts", frames.column("ts").cast(pa.int64()))
    columns = columns.append_column("bytes_lost", frames.column("size").cast(pa.int64()))
    return table_of(({**row, "method": "lost", "confidence": 1.0} for row in columns.to_pylist()), GAPS)


def kernel_loss(us: int) -> Row:
    """The finding about packets that the kernel dropped at a time."""
    gap = {
        "agent_id": "local", "connection_id": f"{INTERFACE}eth0:1", "seq": 5, "direction": "request", "ts": us,
        "bytes_lost": 5000, "method": "kernel", "confidence": 1.0,
    }  # fmt: skip
    ((finding, _),) = World(schema_of(FRAMES).empty_table(), table_of([gap], GAPS)).findings
    return dict(finding.row)


def text_of(finding: Known, incident: Row) -> str:
    """All that is stated with a finding."""
    return "\n".join((str(finding.row["summary"]), incident["headline"], incident["reasoning"]))


MADE: dict[str, Callable[[], bytes]] = {
    "answers_http": lambda: pcap(conversations(KAFKA, HTTP_400)),
    "only_closes": lambda: pcap(closing(KAFKA, FIN)),
    "old_server": lambda: pcap(old_server.polls()),
    "loops": lambda: loops(records_again, ill=120).pcap(),
    "committed_beyond": lambda: beyond().pcap(),
    "commits_beyond": lambda: commits_beyond(heals=True).pcap(),
    "owned": lambda: owned().pcap(),
    "reads_on": lambda: reads_on(stated=7).pcap(),
    "reads_on_without": lambda: reads_on().pcap(),
    "stale_session": lambda: stale(ill=45).pcap(),
    "nobody_commits": lambda: stale(others=False).pcap(),
    "stale_session_midway": lambda: stale(ill=90, since=70).pcap(),
    "out_of_range": lambda: out_of_range().pcap(),
    "never_commits": lambda: never_commits().pcap(),
    "since_refused": lambda: since_refused().pcap(),
    "since_refused_nothing": lambda: since_refused(others=False, seconds=340).pcap(),
    "silent": lambda: silent().pcap(),
    "silent_since_range": lambda: silent(refused_at=60).pcap(),
    "apart": lambda: reads_on().by_coordinator().pcap(),
    "commits_nothing": lambda: commits_nothing(stated=10, ahead=20).pcap(),
    "commits_nothing_by_hand": lambda: commits_nothing(member=False).pcap(),
    "commits_nothing_midway": lambda: commits_nothing(asks=False).pcap(),
    "refused_once": lambda: refused_once().pcap(),
    "looped_uncommitted": lambda: loops(records_again, ill=70, after=3).pcap(),
    "fenced_alone": lambda: fenced().pcap(),
    "cannot_begin": lambda: cannot_begin().pcap(),
    "commits_elsewhere": lambda: commits_elsewhere().pcap(),
    "commits_unwritten": lambda: commits_elsewhere(code=15).pcap(),
    "looped": lambda: loops(records_again, ill=70, after=20).pcap(),
    "loops_alone": lambda: alone().pcap(),
    "left_out": lambda: left_stages.leaves_out().pcap(),
    "left_out_of_group": lambda: left_stages.leaves_out(group=left_stages.GROUP, seconds=120).pcap(),
    "fetched_uncommitted": lambda: owner_stages.left_out(seconds=110, fetches=True).pcap(),
    "set_back": lambda: set_back().pcap(),
    "lost_commits": lambda: restarted(commits=5, skips=1, seconds=66, stated=150).pcap(),
    "given_to_nobody_seen": lambda: gives_away().pcap(),
    "polls": lambda: pcap(packets(*polls())),
    "doors": lambda: pcap(packets(*doors())),
    "too_large": lambda: pcap(packets(*each(sends, 4))),
    "full": lambda: pcap(packets(stalls(0, 40))),
    "members": lambda: pcap(packets(*each(asks))),
}
"""Captures of servers that are no brokers, and of clients that none here is, by name."""


@cache
def recorded(name: str) -> World:
    """A recording or a made capture, decoded once."""
    if name in MADE:
        with TemporaryDirectory() as folder:
            capture = Path(folder) / f"{name}.pcap"
            capture.write_bytes(MADE[name]())
            landed = read_inputs([str(capture)])
    else:
        (recording,) = CAPTURES.rglob(f"{name}.pcap*")
        landed = read_inputs([str(recording)])
    return World(decoded(landed.frames), landed.gaps)


def each_stated(world: World) -> Iterator[Stated]:
    """All claims of a world in order."""
    return (world.stated[key] for key in sorted(world.stated))
