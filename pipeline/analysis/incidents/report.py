"""Reports a tree of findings to somebody who was just called."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from pipeline.analysis.incidents.losses import what_may_be_lost
from pipeline.analysis.incidents.story import story_of
from pipeline.analysis.libraries import spoken
from pipeline.analysis.rules.case.case import ADVICE, AGAIN, Case, arg, begun, literal, naming, records_of
from pipeline.analysis.rules.case.entities import Known
from pipeline.analysis.rules.case.texts import SEEN, SLOW, WASTES, Texts, brokers, named_groups, sufferers, text_of
from pipeline.analysis.rules.case.tree import SAME, Tree
from pipeline.analysis.rules.kafka.records_behind import less_markers
from pipeline.analysis.rules.kafka.twins import in_full
from pipeline.analysis.rules.model import SEVERITIES, STATE_WORDS
from pipeline.analysis.rules.rule import Rule, rule_named
from pipeline.analysis.safety.guard import attempt
from pipeline.humanize import listed, moment, pluralize, seconds

CERTAIN, LIKELY, OPEN = "certain", "likely", "cause not seen"
_LOOSE = {("server",), ("client",), ("topic",)}
"""What an effect may share with its cause by chance."""
_EVIDENCE = 5
_URGENCIES = 100
"""One more than the greatest urgency of a rule."""
_SECOND_US = 1_000_000
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
_PLAIN = re.compile(r"[\w .,='()*:;<>/-]*", re.ASCII)
"""What a shell leaves as it is between double quotes."""


def incident_row(tree: Tree, losses: Sequence[Known] = ()) -> dict[str, Any]:
    """The columns of ``gold.incidents`` by name, with ``first_us`` and ``last_us`` for its timestamps.

    Args:
        tree: one trouble.
        losses: findings about what the capture lost.
    """
    case, worst = Case(tree), tree.worst()
    reported = case if worst is tree else Case(worst)
    texts = _texts(reported)
    lead = reported.lead
    confidence, reasoning = _confidence(case, texts, reported, losses)
    if reported.bundle is not case.bundle:
        begun = _SENTENCE.split(str(case.lead.row["summary"]))[0]
        reasoning = f"{reasoning} It may have begun with this: {begun}"
    rank = _rank(case.severity, case.state)
    return {
        "incident_id": incident_id(tree.root.findings[0].finding_id),
        "severity": case.severity,
        "state": case.state,
        "urgency": rank * _URGENCIES + _urgency(reported, texts),
        "headline": naming(texts.headline(reported), reported),
        "impact": _impact(case, texts, reported),
        "immediate_action": _now(reported, texts, case.state),
        "remediation": spoken(text_of(texts.fix, reported), reported.library),
        "confidence": confidence,
        "reasoning": reasoning,
        "source": texts.source(reported) or None,
        "affected": texts.affected(reported) or None,
        "rule": tree.root.rule,
        "root_id": tree.root.findings[0].finding_id,
        "rules": list(dict.fromkeys(one.rule for one in tree.findings)),
        "findings": [one.finding_id for one in tree.findings],
        "links": orjson.dumps(
            [
                {"finding": effect, "cause": cause, "because": reason, "is_effect": reason != SAME}
                for effect, cause, reason in tree.links()
            ]
        ).decode(),
        "cluster": str(lead.row["cluster"]),
        "topic": lead.row.get("topic"),
        "partition": lead.row.get("partition"),
        "group_id": lead.group,
        "records": case.records,
        "partitions": case.partitions,
        "growing": _is_growing(case),
        "first_us": case.first_us,
        "last_us": case.last_us,
        "sql": _sql(reported),
        "page": _page(reported),
        "story": attempt("incidents: story", lambda: story_of(tree), lambda: None),
    }


def plain_row(tree: Tree) -> dict[str, Any]:
    """The same columns from nothing but the columns of the first finding: for a tree whose texts fail."""
    row = tree.root.findings[0].row
    rows = [one.row for one in tree.findings]
    severity = min((str(one["severity"]) for one in rows), key=SEVERITIES.index)
    states = {str(one["state"]) for one in rows}
    state = next(one for one in ("ongoing", "unknown", "resolved") if one in states)
    return {
        "incident_id": incident_id(str(row["finding_id"])),
        "severity": severity,
        "state": state,
        "urgency": _rank(severity, state) * _URGENCIES,
        "headline": str(row["summary"]),
        "impact": "",
        "immediate_action": str(row["advice"]),
        "remediation": str(row["advice"]),
        "confidence": OPEN,
        "reasoning": "",
        "source": None,
        "affected": None,
        "rule": row["rule"],
        "root_id": row["finding_id"],
        "rules": list(dict.fromkeys(str(one["rule"]) for one in rows)),
        "findings": [one["finding_id"] for one in rows],
        "links": "[]",
        "cluster": row["cluster"],
        "topic": row.get("topic"),
        "partition": row.get("partition"),
        "group_id": row.get("group_id"),
        "records": None,
        "partitions": 0,
        "growing": None,
        "first_us": min(one["first_us"] for one in rows),
        "last_us": max(one["last_us"] for one in rows),
        "sql": f"FROM gold.findings WHERE finding_id = {literal(row['finding_id'])}",
        "page": "/",
        "story": None,
    }


def incident_id(root_finding_id: str) -> str:
    """Stable as long as the root is the same."""
    return hashlib.sha256(f"incident\0{root_finding_id}".encode()).hexdigest()[:32]


def _rank(severity: str, state: str) -> int:
    """What is not over comes before what is, the critical before the rest; what is only for information last."""
    is_over, rank = state == "resolved", SEVERITIES.index(severity)
    return 5 if is_over and rank else (rank if not is_over and rank < 2 else 2 if is_over else 3)


def _now(case: Case, texts: Texts, state: str) -> str:
    now = _of_process(case, spoken(texts.now(case), case.library))
    return _rule(case).once_over(case, now) if state == "resolved" else now


def _of_process(case: Case, now: str) -> str:
    """What to do; names the process where others share its client id and host."""
    if len(case.processes) != 1 or str(case.processes[0]["address"]) in now:
        return now
    return f"{now} It is {in_full(case.processes[0])}: other connections of its host have the same client id."


def _rule(case: Case) -> type[Rule]:
    """Of the root."""
    return rule_named(case.tree.root.rule)


def _urgency(case: Case, texts: Texts) -> int:
    """Of the rule, but of what its texts do not cover."""
    rule = _rule(case)
    return SLOW if rule.texts is not None and texts is not rule.texts else rule.urgency


def _is_growing(case: Case) -> bool | None:
    """Whether more records come to wait; None: nothing shows it."""
    growing = [one for one in case.tree.findings if rule_named(one.rule).is_growing_while_open]
    if any((one.row.get("state") or "ongoing") == "ongoing" and _grew(one) for one in growing):
        return True
    return False if case.state == "resolved" else None


def _grew(one: Known) -> bool:
    grown = one.details.get("high_watermark_growth")
    return grown > 0 if isinstance(grown, int) else (records_of(one)[0] or 0) > 0


def _impact(case: Case, texts: Texts, reported: Case) -> str:
    return ", ".join(_impacts(case, texts, reported)) + "."


def _impacts(case: Case, texts: Texts, reported: Case) -> Iterator[str]:
    where = f" in {pluralize(case.partitions, 'partition')}" if case.partitions else ""
    if case.records:
        fate = AGAIN if _rule(case).records_come_again else case.fate
        yield f"{pluralize(case.records, 'record')}{less_markers(case.records, case.markers)} {fate}{where}"
    elif where and case.bundle.named.get("partition") and _urgency(reported, texts) < WASTES:
        yield pluralize(case.partitions, "partition")
    elif reported.times > 1:
        yield f"{reported.times:,} {rule_named(reported.lead.rule).unit}"
    if reported.recurrences:
        yield f"came {pluralize(reported.recurrences, 'time')} before"
    if _is_growing(case) and case.state == "ongoing":
        yield "growing"
    others = [name for name in case.groups if name != case.lead.group]
    if others:
        yield f"affects {named_groups(others)}"
    span = f" ({seconds(case.last_us - case.first_us)})" if case.last_us - case.first_us >= _SECOND_US else ""
    last = moment(case.last_us)
    match case.state:
        case "ongoing":
            yield f"since {moment(case.first_us)} UTC{span}, still ongoing when the capture ends"
        case "unknown":
            yield f"since {moment(case.first_us)} UTC{span}, {STATE_WORDS['unknown']}: seen last at {last} UTC"
        case _:
            begun = moment(case.first_us)
            time = f"at {begun}" if begun == last else f"from {begun} to {last[11:]}"
            yield f"{time} UTC{span}, {STATE_WORDS['resolved']}"


def _confidence(case: Case, texts: Texts, reported: Case, losses: Sequence[Known]) -> tuple[str, str]:
    """How sure, and why: what that which is reported rests on, and what may follow from it."""
    sentences = [text_of(texts.reasoning, reported)]
    level = OPEN if not texts.is_cause(reported) else LIKELY if texts.is_likely(reported) else CERTAIN
    effects = [node for node in case.tree.nodes if node.edge is not None]
    if effects:
        rules = listed(dict.fromkeys(rule_named(node.bundle.rule).title for node in effects))
        reasons = "; ".join(dict.fromkeys(node.edge.because for node in effects if node.edge is not None))
        loose = any(node.edge is not None and node.edge.shares in _LOOSE for node in effects)
        what = f"{'Possible consequence' if loose else 'Consequence'}{'' if len(effects) == 1 else 's'}"
        sentences.append(f"{what}: {rules} ({reasons}).")
        if loose and level == CERTAIN:
            level = LIKELY
    lost = what_may_be_lost(case, losses)
    if lost:
        sentences.append(lost)
        level = LIKELY if level == CERTAIN else level
    return level, " ".join(sentences)


def _texts(case: Case) -> Texts:
    texts = _rule(case).texts_of(case)
    return _own_texts(case) if texts is None else texts


def _ground(case: Case) -> str:
    has_exchanges = any(one.row["evidence"] for one in case.bundle.findings)
    where = (
        "each exchange is in the evidence" if has_exchanges else "each connection is counted in `silver.connections`"
    )
    return f"{SEEN}{where}."


def _own_texts(case: Case) -> Texts:
    """Of a rule without texts here: those of its findings, parted where the advice says ``Now:`` and ``Fix:``."""
    summary, advice = str(case.lead.row["summary"]), str(case.lead.row["advice"])
    headline, *other_sentences = _SENTENCE.split(summary)
    headline, sure = headline.rstrip("."), " ".join(other_sentences) or _ground(case)
    others = _others(case)
    if others:
        headline += f" (also {others})"
    parted = ADVICE.match(advice)
    if parted is not None:
        now, fix = (begun(text) for text in (parted["now"], parted["fix"]))
    else:
        now, _, fix = advice.partition(". ")
        now = now if now.endswith(".") else f"{now}."
    if _rule(case).is_of_brokers(case):
        return Texts(lambda _: headline, lambda _: now, fix or now, sure, source=brokers, affected=sufferers)
    return Texts(lambda _: headline, lambda _: now, fix or now, sure)


def _others(case: Case) -> str:
    """What the other findings of the bundle are about, but for the group's name, which the headline states."""
    others = (one for one in case.bundle.findings if one is not case.lead)
    subjects = dict.fromkeys(str(one.row["subject"]).removeprefix(f"{case.lead.group}/") for one in others)
    subjects.pop(str(case.lead.row["subject"]).removeprefix(f"{case.lead.group}/"), None)
    return listed(sorted(subjects))


def _sql(case: Case) -> str:
    """A query that shows it."""
    row, lead = case.lead.row, case.lead
    if row.get("topic") and (lead.group or row.get("partition") is not None):
        wanted = [f"topic = {literal(row['topic'])}"]
        if row.get("partition") is not None:
            wanted.append(f"partition = {row['partition']}")
        if lead.group:
            wanted.append(f"group_id = {literal(lead.group)}")
        return f"FROM gold.offset_timeline WHERE {' AND '.join(wanted)} ORDER BY ts, ordinal"
    if (query := rule_named(lead.rule).sql(case)) is not None:
        return query
    evidence = list(row.get("evidence") or ())[:_EVIDENCE]
    if evidence:
        return f"FROM silver.exchanges WHERE exchange_id IN ({', '.join(map(literal, evidence))}) ORDER BY ts"
    return f"FROM gold.findings WHERE finding_id = {literal(lead.finding_id)}"


def _page(case: Case) -> str:
    """Where the web page shows it: path and query."""
    row, lead = case.lead.row, case.lead
    if row.get("topic") and row.get("partition") is not None and lead.group:
        where = {
            "cluster": row["cluster"], "group": lead.group, "topic": row["topic"], "partition": row["partition"],
        }  # fmt: skip
        return f"/partitions?{urlencode({**where, 'range': 'all'})}"
    return f"/exchanges?{urlencode({'finding': lead.finding_id, 'range': 'all'})}" if row.get("evidence") else "/"


def sql_command(lake: str, sql: str) -> str:
    """The command that asks a lake."""
    quoted = f'"{sql}"' if _PLAIN.fullmatch(sql) else arg(sql)
    return f"wirelake sql --lake {arg(lake)} {quoted}"
