"""Texts that incidents of open transactions share."""

from __future__ import annotations

from pipeline.analysis.rules.callers import Caller
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import named_groups
from pipeline.analysis.rules.kafka.producers.aborting import by_hand


def transaction(case: Case) -> str:
    """The transaction as a sentence names it."""
    name = case.details.get("transactional_id")
    if name:
        return f"transaction {name}"
    producer = case.details.get("producer_id")
    return "a transaction" if producer is None else f"a transaction of producer {producer}"


def holder(case: Case) -> str:
    """Who has the transaction open."""
    name = case.details.get("client_id")
    if name:
        return str(next((one for one in case.callers if one.client_id == name), Caller(name, None)))
    return f"The producer of {transaction(case)}"


def starving(groups: list[str], case: Case) -> str:
    """Groups that get nothing beyond it."""
    get = "got" if is_over(case) else "gets" if len(groups) == 1 else "get"
    return f"{named_groups(groups)} {get} nothing beyond it" if groups else ""


def commands_by_hand(case: Case) -> str:
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
    known = {} if is_over(case) else {place: start for place, start in starts.items() if start is not None}
    return by_hand(list(places), known, case.details.get("transactional_id"))


def end_transaction(case: Case) -> str:
    """What ends the transaction."""
    again = case.details.get("came_back_as")
    if again:
        return (
            f"A restart of {holder(case)} does not end it: it runs as {again} now. Start it once with "
            f"transactional.id={case.lead.row['subject']}, which aborts what is open as it starts, or end that by "
            f"hand: {commands_by_hand(case)}."
        )
    return (
        f"Restart {holder(case)}: with the same transactional.id it aborts its open transaction as it starts. If it "
        f"is gone: {commands_by_hand(case)}."
    )


def is_over(case: Case) -> bool:
    """Whether it was seen to end."""
    return case.lead.row.get("state") == "resolved"


END = (
    "Commit or abort in every path of the producer's code, also after errors, and set transaction.timeout.ms (Java: "
    "60000 by default) to what a transaction takes at most: the coordinator aborts it then"
)
