"""Words for incidents that begin with a transaction that stays open."""

from __future__ import annotations

from pipeline.analysis.incidents.case import Case
from pipeline.analysis.incidents.words.model import SEEN, STANDS, Words, named_groups
from pipeline.analysis.rules.callers import Caller
from pipeline.analysis.rules.kafka.producers.aborting import by_hand
from pipeline.analysis.rules.model import brief, clock, seconds


def _transaction(case: Case) -> str:
    name = case.details.get("transactional_id")
    if name:
        return f"transaction {name}"
    producer = case.details.get("producer_id")
    return "a transaction" if producer is None else f"a transaction of producer {producer}"


def _holder(case: Case) -> str:
    """Who has the transaction open."""
    name = case.details.get("client_id")
    if name:
        return str(next((one for one in case.callers if one.client_id == name), Caller(name, None)))
    return f"The producer of {_transaction(case)}"


def _stalled_lso(case: Case) -> str:
    holds = f"{_holder(case)} {'kept' if _is_over(case) else 'keeps'} {_transaction(case)} open on {case.places}"
    readers = sorted({one["group_id"] for one in case.details.get("starved_consumers", []) if one.get("group_id")})
    got = "got" if _is_over(case) else "gets"
    return f"{holds}: {_starving(readers, case) or f'whoever reads only what is committed {got} nothing beyond it'}"


def _starving(groups: list[str], case: Case) -> str:
    get = "got" if _is_over(case) else "gets" if len(groups) == 1 else "get"
    return f"{named_groups(groups)} {get} nothing beyond it" if groups else ""


def _by_hand(case: Case) -> str:
    """The commands that end it: where it begins is stated by findings about it or about what it holds back."""
    starts: dict[str, object] = {}
    places: dict[str, None] = {}
    for one in (*case.bundle.findings, *case.tree.findings):
        topic, partition, stated = one.row.get("topic"), one.row.get("partition"), one.details
        if one.rule == "hanging_transaction":
            places |= dict.fromkeys(place for place in stated.get("partitions", ()) if isinstance(place, str))
            starts |= stated.get("first_offsets") or {}
        elif one.rule in ("lso_stalled", "read_committed_starved") and topic and partition is not None:
            place = f"{topic}-{partition}"
            places.setdefault(place)
            starts.setdefault(place, stated.get("first_offset", stated.get("last_stable_offset")))
    # Of what is over only the places come again, not the offsets.
    known = {} if _is_over(case) else {place: start for place, start in starts.items() if start is not None}
    return by_hand(list(places), known, case.details.get("transactional_id"))


def _end_transaction(case: Case) -> str:
    again = case.details.get("came_back_as")
    if again:
        return (
            f"A restart of {_holder(case)} does not end it: it runs as {again} now. Start it once with "
            f"transactional.id={case.lead.row['subject']}, which aborts what is open as it starts, or end that by "
            f"hand: {_by_hand(case)}."
        )
    return (
        f"Restart {_holder(case)}: with the same transactional.id it aborts its open transaction as it starts. If it "
        f"is gone: {_by_hand(case)}."
    )


def _is_late(case: Case) -> bool:
    """Whether it was seen open for longer than its timeout; else it only takes longer than others do."""
    timeout_us, age_us = case.details.get("timeout_us") or 0, case.details.get("age_us") or 0
    return bool(0 < timeout_us <= age_us)


def _is_left(case: Case) -> bool:
    """Whether its client began anew under another id."""
    return bool(case.details.get("came_back_as"))


def _is_over(case: Case) -> bool:
    return case.lead.row.get("state") == "closed"


def _timeout(case: Case) -> str:
    return seconds(int(case.details.get("timeout_us") or 0))


def _silence(case: Case) -> str:
    """For how long nothing was seen of it."""
    silent_us = case.details.get("silent_us", case.details.get("age_us"))
    return seconds(silent_us) if isinstance(silent_us, int) else "long"


def _hanging(case: Case) -> str:
    where = "" if case.places == "?" else f" on {case.places}"
    waits = _starving(list(case.groups), case)
    behind = f": {waits}" if waits else ""
    if _is_left(case):
        again = case.details["came_back_as"]
        return f"{_holder(case)} came back as {again} and left {_transaction(case)} open{where}{behind}"
    if _is_over(case):
        kept = f"{_holder(case)} kept {_transaction(case)} open{where} beyond its timeout of {_timeout(case)}"
        return f"{kept}: the coordinator aborted it"
    keeps = f"{_holder(case)} keeps {_transaction(case)} open{where}"
    if _is_late(case):
        return f"{keeps} beyond its timeout of {_timeout(case)}{behind}"
    return f"{keeps}{behind}" if behind else f"{keeps}, and nothing was seen of it for {_silence(case)}"


def _hanging_sure(case: Case) -> str:
    """What shows that it hangs, and until when anybody listened."""
    until_us = case.details.get("known_until_us")
    deaf = f" After {clock(until_us)} UTC nobody listened." if isinstance(until_us, int) else ""
    unheard_us = case.details.get("coordinator_unheard_us")
    if isinstance(unheard_us, int):
        deaf = f" After {clock(unheard_us)} UTC nothing was seen of its coordinator."
    return f"{SEEN}{_ground(case)}.{deaf}"


def _ground(case: Case) -> str:
    if _is_over(case):
        return f"the transaction began, and its end without its producer asking for it, after {_timeout(case)}"
    if _is_left(case):
        again = case.details["came_back_as"]
        return f"the transaction began, its client began anew as {again}, and nothing ended what it had left open"
    if _is_late(case):
        return f"the transaction began, and was not ended within its timeout of {_timeout(case)}"
    usual_us = case.details.get("usual_us")
    usual = f", while others there were committed after {brief(usual_us)} at most" if isinstance(usual_us, int) else ""
    timeout = f"; its timeout of {_timeout(case)} has not passed" if case.details.get("timeout_us") else ""
    return f"the transaction began, and nothing was seen of it for {_silence(case)}{usual}{timeout}"


_END = (
    "Commit or abort in every path of the producer's code, also after errors, and set transaction.timeout.ms (Java: "
    "60000 by default) to what a transaction takes at most: the coordinator aborts it then"
)

TRANSACTIONS: dict[str, Words] = {
    "lso_stalled": Words(
        _stalled_lso,
        _end_transaction,
        f"{_END}.",
        f"{SEEN}the last stable offset stands at the first offset of this transaction, while the log grows.",
        STANDS,
        source=_holder,
    ),
    "hanging_transaction": Words(
        _hanging,
        _end_transaction,
        f"{_END}.",
        _hanging_sure,
        STANDS,
        source=_holder,
        is_likely=lambda case: (
            case.lead.row.get("state") == "unknown" or not (_is_over(case) or _is_left(case) or _is_late(case))
        ),
    ),
    "read_committed_starved": Words(
        lambda case: (
            f"{case.who} gets no records of {case.places}: it reads only what is committed, and a transaction is open "
            "there"
        ),
        lambda case: f"End the open transaction: {_by_hand(case)}.",
        f"{_END}.",
        f"{SEEN}it fetches again and again at the last stable offset.",
        STANDS,
        source=_transaction,
    ),
}
