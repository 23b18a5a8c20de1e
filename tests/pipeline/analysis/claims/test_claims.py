"""Every claim has its ground on the wire: without it the claim goes, or is stated as uncertain."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from decoder.model import NO_LOSS
from pipeline.analysis.claims.model import Ground
from pipeline.analysis.claims.table import all_claims, claims_of
from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.rules.rule import all_rules
from tests.pipeline.analysis.claims.worlds import Stated, World, each_stated, kernel_loss, recorded, text_of

RECORDINGS = (
    "always_refused", "broker_gone", "changing_hands", "evicted", "faulty_writers", "hung", "lagging", "lossy",
    "refused", "share_groups", "stale_readers", "troubled_broker", "unsure_writers", "lost_streams", "troubled_mongodb",
    "old_format", "stalled_lso", "stuck_commit", "version_negotiation", "answers_http", "only_closes", "old_server",
    "cut_off", "loops", "looped", "processes", "reads_on", "reads_on_without", "out_of_range", "never_commits",
    "refused_once", "looped_uncommitted", "owned", "stale_session", "stale_session_midway",
    "committed_beyond", "commits_beyond", "commits_nothing", "commits_nothing_by_hand", "commits_nothing_midway",
    "since_refused", "since_refused_nothing", "fenced_alone", "commits_elsewhere", "silent",
    "silent_since_range", "apart", "doors", "too_large", "members", "full", "client_resets",
    "coordinator_cut", "cannot_begin", "commits_unwritten", "nobody_commits", "away", "host_cut", "host_shut_out",
    "one_way", "tls_closed", "tls_unanswered", "rejected", "no_route", "rejected_amid_work", "deaf",
    "connections_wait", "queue_full", "login_lacking", "name_lacking_tls12", "other_family_dropped",
    "loops_alone", "left_out", "left_out_of_group", "lost_commits", "given_to_nobody_seen",
    "fetched_uncommitted", "polls", "readers", "set_back",
)  # fmt: skip
"""Together they show every rule."""
of_each_recording = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow, pytest.mark.xdist_group(f"claims-{name}")]) for name in RECORDINGS],
)
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
_GROUNDS_AGAIN = re.compile(r"Seen on the wire: ")
"""A reason of this form names the rule's grounds again, as the table has them."""
_OF_INCIDENTS = re.compile(r"^(?:Possible c|C)onsequences?: |^It may have begun with this: |^Why is not on the wire: ")
"""Reasons of any incident: they refer to findings, which have claims of their own."""
Part = tuple[Stated, Ground, frozenset[str]]


def test_each_rule_has_claims() -> None:
    assert [rule.name for rule in all_rules() if not rule.claims] == []


@pytest.mark.proof
def test_the_recordings_state_each_claim() -> None:
    stated = {(one.claim.rule, one.claim.says) for name in RECORDINGS for one in each_stated(recorded(name))}
    assert {(claim.rule, claim.says) for claim in all_claims()} - stated == set()


def test_each_claim_is_one_row() -> None:
    assert len({(claim.rule, claim.words) for claim in all_claims()}) == len(all_claims())
    assert len({(claim.rule, claim.says) for claim in all_claims()}) == len(all_claims())


@of_each_recording
def test_each_sentence_is_a_claim(name: str) -> None:
    without = []
    for finding, incident in recorded(name).findings:
        summary = _SENTENCE.split(str(finding.row["summary"]))
        without += [sentence for sentence in summary if not is_claim(sentence, [finding.rule])]
        reasons = [
            sentence
            for sentence in (incident["headline"], *_SENTENCE.split(incident["reasoning"]))
            if not _GROUNDS_AGAIN.match(sentence) and not _OF_INCIDENTS.search(sentence)
        ]
        without += [sentence for sentence in reasons if not is_claim(sentence, incident["rules"])]
    assert without == []


@of_each_recording
def test_a_claim_goes_with_its_evidence(name: str) -> None:
    """Of each finding one part; those whose exchanges do not overlap are removed together."""
    left = world = recorded(name)
    together = apart(parts(world))
    for _, ground, ids in together:
        left = left.without(ids, ground.half)
    assert [one.key for one, _, _ in together if one.key in left.stated] == []


@of_each_recording
def test_silence_is_uncertain_where_bytes_were_lost(name: str) -> None:
    world = recorded(name)
    if not any(one.claim.rests_on_silence for one in each_stated(world)):
        pytest.skip("nothing in it rests on silence")
    lossy = world.with_gaps(world.frames.column("connection_id").unique().to_pylist())
    assert [one.key for one in each_stated(lossy) if one.claim.rests_on_silence and not one.is_weak] == []


@of_each_recording
def test_silence_is_uncertain_where_the_kernel_dropped_packets(name: str) -> None:
    """Of which connections is unknown then."""
    found = [finding for finding, _ in recorded(name).findings]
    middle_us = sorted(one.last_us for one in found)[len(found) // 2]
    both = grouped([*(one.row for one in found), kernel_loss(middle_us)])
    incidents = {row["incident_id"]: row for row in both.incidents}
    of = {row["finding_id"]: incidents[row["incident_id"]] for row in both.findings}
    stated = [
        Stated(claim, finding, of[finding.finding_id])
        for finding in found
        for claim in claims_of(finding.rule)
        if claim.rests_on_silence and re.search(claim.says, text_of(finding, of[finding.finding_id]))
    ]
    late = [one for one in stated if one.incident["state"] != "resolved"]
    assert [one.key for one in late if not one.is_weak] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evicted", "lost_streams", "stale_readers"])
def test_what_is_left_is_the_ground_of_what_is_claimed(name: str) -> None:
    world = recorded(name)
    for less in removals(world, random.Random(name), shares=(0.5,)):
        assert ungrounded(less) == []


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RECORDINGS)
def test_what_is_left_is_always_the_ground(name: str, seed: int) -> None:
    world = recorded(name)
    for less in (*removals(world, random.Random(f"{name}/{seed}")), *views(world)):
        assert ungrounded(less) == []


@pytest.mark.proof
@pytest.mark.parametrize("name", RECORDINGS)
def test_each_claim_goes_with_each_evidence_alone(name: str) -> None:
    world = recorded(name)
    for one, ground, ids in parts(world):
        assert one.key not in world.without(ids, ground.half).stated, ground.words


def is_claim(sentence: str, rules: Iterable[str]) -> bool:
    """Whether the table has a claim of one of the rules that finds itself in a sentence."""
    return any(re.search(claim.says, sentence) for rule in rules for claim in claims_of(rule))


def parts(world: World) -> Iterator[Part]:
    """Each ground of each claim once, with its exchanges."""
    done: set[tuple[str, str, str]] = set()
    for one in each_stated(world):
        for ground in one.claim.grounds:
            place = one.claim.rule, one.claim.says, ground.words
            if ground.is_silence or place in done:
                continue
            done.add(place)
            shown = world.evidence(ground, one.finding)
            assert len(shown) >= ground.least, f"{one.key} has no {ground.words}"
            yield one, ground, frozenset(exchange.exchange_id for exchange in shown)


def apart(some: Iterable[Part]) -> list[Part]:
    """Parts of different findings that share no exchange."""
    taken: list[Part] = []
    for part in some:
        if all(part[0].key[:2] != other[0].key[:2] and part[2].isdisjoint(other[2]) for other in taken):
            taken.append(part)
    return taken


def removals(world: World, rng: random.Random, shares: tuple[float, ...] = (0.1, 0.5, 0.9)) -> Iterator[World]:
    """Some exchanges did not happen; the capture lost some frames."""
    ids = sorted({one for one in world.frames.column("exchange_id").to_pylist() if one})
    for share in shares:
        yield world.without({one for one in ids if rng.random() < share})
    lost = pa.array([rng.random() < 0.05 for _ in range(world.frames.num_rows)], pa.bool_())
    yield world.losing(pa.chunked_array([lost]))


def views(world: World) -> Iterator[World]:
    """The capture began late, ended early, holds one direction, or the traffic of one host."""
    if not world.frames.num_rows:
        return  # nobody sent a message: what is claimed rests on connections alone
    frames, times = world.frames, world.frames.column("ts").cast(pa.int64())
    middle_us = int(pc.quantile(times, 0.5)[0].as_py())
    yield World(frames.filter(pc.greater(times, middle_us)), world.gaps)
    yield World(frames.filter(pc.less(times, middle_us)), world.gaps)
    for column in ("direction", "server_ip"):
        for value in frames.column(column).unique().to_pylist():
            yield World(frames.filter(pc.equal(frames.column(column), value)), world.gaps)


def ungrounded(world: World) -> list[tuple[tuple[str, str, str], str]]:
    """Claims without their evidence, and those that rest on the silence of connections with losses."""
    methods = zip(*(world.gaps.column(name).to_pylist() for name in ("connection_id", "method")), strict=True)
    lossy = {connection for connection, method in methods if not method.startswith(NO_LOSS)}
    found = []
    for one in each_stated(world):
        for ground in one.claim.grounds:
            shown = world.evidence(ground, one.finding)
            if ground.is_silence:
                is_bare = not one.is_weak and any(exchange.connection_id in lossy for exchange in shown)
            else:
                is_bare = len(shown) < ground.least
            if is_bare:
                found.append((one.key, ground.words))
    return found
