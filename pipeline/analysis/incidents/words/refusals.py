"""Words for incidents that begin with a login or a right that brokers refuse."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.incidents.case import Case, arg, count
from pipeline.analysis.incidents.entities import TOPIC, TRANSACTION
from pipeline.analysis.incidents.words.model import REFUSED, SEEN, Words, own_clients
from pipeline.analysis.rules.kafka.rights import REFUSED_RIGHT, commands

_WRITES = ("produce_refused",)
"""Rules whose findings show that who was refused writes."""


def _kinds(case: Case) -> set[str]:
    return {kind for one in case.bundle.findings for kind in one.details.get("kinds", ())}


def _is_login(case: Case) -> bool:
    kinds = _kinds(case)
    return not kinds or any(not kind.endswith(REFUSED_RIGHT) for kind in kinds)


def _is_right(case: Case) -> bool:
    return any(kind.endswith(REFUSED_RIGHT) for kind in _kinds(case))


def _headline(case: Case) -> str:
    often = count(case.times, "time") if case.times > 1 else "once"
    return f"Broker {case.server} refuses {case.who} {often}: {case.kinds}"


def _known(names: Iterable[str], placeholder: str) -> str:
    """The name that is meant, if there is but one."""
    found = sorted(set(names))
    return arg(found[0]) if len(found) == 1 else placeholder


def _named(case: Case, kind: str) -> list[str]:
    return [entity[-1] for node in case.tree.nodes for entity in node.bundle.named.get(kind, ())]


def _give(case: Case) -> str:
    writes = any(one.rule in _WRITES for one in case.tree.findings)
    right = commands(
        _kinds(case), group=_known(case.groups, "GROUP"), topic=_known(_named(case, TOPIC), "TOPIC"),
        transactional_id=_known(_named(case, TRANSACTION), "TRANSACTIONAL_ID"), on_topic="Write" if writes else "Read",
    )  # fmt: skip
    return (
        f"If {case.clients} may do this, give its principal the right: {right}; the broker's authorizer log has the "
        "principal. If not, stop it."
    )


def _now(case: Case) -> str:
    login = (
        f"If you know {case.clients}: correct its credentials (sasl.jaas.config, sasl.username and sasl.password in "
        "librdkafka). If nobody does: somebody tries passwords, block the address."
    )
    return " ".join([login] * _is_login(case) + [_give(case)] * _is_right(case))


def _fix(case: Case) -> str:
    secrets = "Rotate secrets so that old and new are valid together, and alarm on refused logins."
    rights = "Keep the ACLs with the service's deployment, so that both change together."
    return " ".join([secrets] * _is_login(case) + [rights] * _is_right(case))


REFUSALS: dict[str, Words] = {
    "auth_failed": Words(_headline, _now, _fix, f"{SEEN}the broker's own answer.", REFUSED, hurt=own_clients),
}
