"""Words for incidents that begin with a process: a shared name, a halt."""

from __future__ import annotations

from pipeline.analysis.incidents.case import Case, arg, begun, count, listed
from pipeline.analysis.incidents.words.model import LOSES, REFUSED, SEEN, WHY_IS_NOT, Words, advised, groups
from pipeline.analysis.rules.model import clock, seconds


def _names(case: Case) -> str:
    return listed(str(name) for name in case.details.get("names", ()))


def _shared(case: Case) -> str:
    instance = case.details.get("group_instance_id")
    if _is_alone(case):
        return (
            f"{_names(case)} is refused in group {case.group} ({case.kinds}): another process, which was not captured, "
            f"uses group.instance.id {instance}, too"
        )
    both = f"{_names(case)} both use group.instance.id {instance} in group {case.group}"
    if case.details.get("each_other"):
        return f"{both} and fence each other, {count(case.times, 'time')}: give each its own group.instance.id"
    return (
        f"{both}: the coordinator refuses {case.details.get('refused')} ({case.kinds}). Give each its own "
        "group.instance.id"
    )


def _rivals(case: Case) -> str:
    """Client, port, member and since when, of each process."""
    found = []
    for one in case.details.get("rivals", ()):
        member = f", member {one['member_id']}" if one.get("member_id") else ""
        found.append(f"{one.get('client_id')} at {one.get('address')}{member}, since {clock(one['since_us'])} UTC")
    return "; ".join(found)


def _is_alone(case: Case) -> bool:
    return len(case.details.get("rivals", ())) == 1


def _stop_one(case: Case) -> str:
    if _is_alone(case):
        return f"{begun(advised(case, 'now'))} Refused is {_rivals(case)}."
    return (
        f"Stop one of the two, or start it with another group.instance.id ({_rivals(case)}): until then each puts the "
        "other out, and what was not committed is processed twice."
    )


def _frozen(case: Case) -> str:
    details = case.details
    silent = seconds(int(details.get("silent_us") or 0))
    stated = details.get("session_us")
    timeout = f"its session timeout ({seconds(stated)})" if stated else "its session timeout"
    often = f", {count(case.times, 'time')}" if case.times > 1 else ""
    return (
        f"{case.who} stood still for {silent}{often}, longer than {timeout}: nothing came on any of its connections, "
        f"and group {case.group} went on without it"
    )


def _frozen_now(case: Case) -> str:
    refused = int(case.details.get("commits") or 0)
    again = f" What it had processed and could not commit ({count(refused, 'refused commit')}) is read again."
    members = f"`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {arg(case.group)} --members`"
    away = "" if case.details.get("back_us") else f" Is it among the members? {members}"
    return f"{begun(advised(case, 'now'))}{again if refused else ''}{away}"


PROCESSES: dict[str, Words] = {
    "instance_id_shared": Words(
        _shared,
        _stop_one,
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}both name this group.instance.id, and the coordinator's refusals.",
        REFUSED,
        source=_names,
        affected=groups,
    ),
    "frozen_process": Words(
        _frozen,
        _frozen_now,
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}its requests end and begin again, and it did not leave. {WHY_IS_NOT}",
        LOSES,
        affected=groups,
    ),
}
