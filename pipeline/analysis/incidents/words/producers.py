"""Words for incidents that begin with producers that brokers no longer take for what they were."""

from __future__ import annotations

from pipeline.analysis.incidents.case import Case, listed
from pipeline.analysis.incidents.words.model import LOSES, SEEN, Words, own_clients, topics


def _taken_by(case: Case) -> str:
    return listed(one for one in case.details.get("taken_by", ()) if isinstance(one, str)) or "another"


def _fenced(case: Case) -> str:
    name = case.lead.row["subject"]
    if not case.details.get("shared"):
        return f"The coordinator aborted transaction {name} of {case.who}; nobody else was seen to take the id"
    if case.details.get("course") == "by turns":
        return f"{_taken_by(case)} take transactional id {name} from each other: each aborts what the other writes"
    going_on = "writes on" if case.details.get("course") == "writes on" else "is still there"
    return f"{case.who} was fenced off transactional id {name} by {_taken_by(case)}, and {going_on}"


def _fenced_now(case: Case) -> str:
    if case.details.get("shared"):
        return f"End {case.clients} if a newer instance does its work; if both are wanted, give one another id."
    return f"Restart {case.clients} if it does not write again. What was in that transaction is not written."


def _fenced_fix(case: Case) -> str:
    if case.details.get("shared"):
        return (
            "One transactional.id per running instance; in Streams and Connect it follows from application.id and "
            "task. Wait for the old process to end before a deployment starts the new one."
        )
    return (
        "Commit more often than each transaction.timeout.ms, or raise it (up to the brokers' "
        "transaction.max.timeout.ms); look what kept the producer for so long."
    )


def _fenced_sure(case: Case) -> str:
    if case.details.get("shared"):
        return f"{SEEN}the broker's answer, and who took the id."
    return f"{SEEN}the broker's answer; a rival that was not captured would look the same."


def _is_forgotten(case: Case) -> bool:
    """Whether the broker only no longer knew the producer: then nothing is lost."""
    return all(one.details.get("kinds") == ["UNKNOWN_PRODUCER_ID"] for one in case.bundle.findings)


PRODUCERS: dict[str, Words] = {
    "fenced_producer": Words(
        _fenced,
        _fenced_now,
        _fenced_fix,
        _fenced_sure,
        LOSES,
        affected=own_clients,
    ),
    "sequence_gap": Words(
        lambda case: (
            f"{case.who} began anew on {case.places}: the broker had forgotten its producer id"
            if _is_forgotten(case)
            else f"{case.who} writes to {case.places} out of sequence: the broker refuses it, records are missing"
        ),
        lambda case: (
            "Nothing, if the topic's retention has deleted all that this producer wrote: it begins anew by itself. "
            f"Else look whether records of {case.clients} are missing."
            if _is_forgotten(case)
            else f"Restart {case.clients}: it cannot go on with this producer id."
        ),
        lambda case: (
            "Brokers and clients of Kafka 2.5 or later (KIP-360), or a retention longer than the producer's pauses."
            if _is_forgotten(case)
            else "Look for earlier errors of this producer (delivery.timeout.ms passed, batches expired) and treat a "
            "failed send as lost; max.in.flight.requests.per.connection at most 5 with enable.idempotence=true."
        ),
        lambda case: f"{SEEN}{case.kinds} is the broker's own answer.",
        LOSES,
        affected=topics,
    ),
}
