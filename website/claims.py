"""The reference page of claims: what findings and incidents state, and what each statement needs in the capture."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.claims.model import Ground
from pipeline.analysis.claims.table import claims_of
from pipeline.analysis.incidents.losses import OF_CLIENTS, OF_CLUSTER, OF_UNKNOWN
from pipeline.analysis.rules.rule import Rule, all_rules
from website.markdown import cell, code, table

_HEAD = ("claim", "needs", "exchanges that can hold it", "which name")
_INTRO = f"""# Claims

Everything that a summary, a headline or the reasons for its certainty state rests on packets of the capture. This
table lists each claim with the evidence that it needs. A test takes every recorded incident, removes the evidence,
and sees the claim disappear; it removes exchanges at random and sees that what is still claimed still has its
evidence.

The evidence is of two kinds. Most claims need exchanges: the third column is the condition on
[`silver.exchanges`](tables.md#silverexchanges) that selects them (`application` and `command` are columns of
[`silver.mongo_commands`](tables.md#silvermongo_commands)), the fourth says which names of the finding they state.
Claims marked *silence* rest on what did not happen, and need connections that were captured without loss. Where the
capture lost bytes, such an incident is `likely` instead of `certain`, and its reasons end with one of these
sentences:

- "{OF_CLIENTS}"
- "{OF_CLUSTER}"
- "{OF_UNKNOWN}"

The last one follows a loss whose connection is unknown: packets that the kernel dropped, landing files that
are gone, connections that the agent skipped. Losses count from a minute before the incident begins until a minute
after it is over.

Of every incident, whatever its rule: its time is that of the exchanges in its evidence, *still ongoing* means that
it held when the capture ends, and *unknown* that nothing shows whether it does. That one finding *follows* from
another needs findings of both, names that they share, and a cause that did not begin after its effect; where they
share no more than a client, a broker or a topic, it *may follow*."""


def claims_page() -> str:
    """All claims, rule by rule."""
    parts = [_INTRO]
    for rule in all_rules():
        parts += [f"## {rule.name}", f"{rule.meaning} [The rule](../rules/{rule.name}.md).", table(_HEAD, _rows(rule))]
    return "\n\n".join(parts)


def _rows(rule: type[Rule]) -> Iterable[tuple[str, ...]]:
    for claim in claims_of(rule.name):
        first = cell(claim.words)
        if not claim.grounds:
            yield first, "nothing else", "", ""
        for ground in claim.grounds:
            yield first, _needs(ground), code(ground.where), ", ".join(ground.names)
            first = ""


def _needs(ground: Ground) -> str:
    if ground.is_silence:
        return f"*silence*: {cell(ground.words)}"
    half = "" if ground.half == "exchange" else f" ({ground.half}s)"
    least = "" if ground.least == 1 else f", at least {ground.least}"
    return f"{cell(ground.words)}{half}{least}"
