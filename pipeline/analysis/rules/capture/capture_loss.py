"""Rule ``capture_loss``."""

from __future__ import annotations

from pipeline.analysis.rules.capture.words import BOTH_WAYS, FILE, MORE_ROOM, NOT_READ, WHOLE
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts, nobody, own_clients
from pipeline.analysis.rules.rule import OF_AGENT, Rule
from pipeline.humanize import listed, pluralize

_DISTRUST = (
    "Of the connections named here do not trust counts, unanswered requests, and offsets in the time of the loss."
)
ADVICE = f"Now: look at `bronze.gaps`. {_DISTRUST} Fix: {WHOLE}. If they were whole, {MORE_ROOM}."
DROPPED = f"Now: do not trust counts, unanswered requests, and offsets in the time of the loss. Fix: {MORE_ROOM}."
FILE_LOST = (
    "Now: read the capture again if it is still there. Fix: look in `ops.landing_files` at what was wrong with it."
)
ONE_WAY = f"Now: conclude nothing about these connections, also not that requests went unanswered. Fix: {BOTH_WAYS}."


def _whole(case: Case) -> str:
    """What the kernel dropped was not read; what is missing from a connection may have been cut off as well."""
    names = [str(name) for one in case.bundle.findings for name in one.details.get("connections", ())]
    if _captured(case):
        return f"{BOTH_WAYS[:1].upper()}{BOTH_WAYS[1:]}."
    if names and all(name.startswith(FILE) for name in names):
        return "Look in `ops.landing_files` at what was wrong with the file, and read the capture again."
    more_room = f"{MORE_ROOM[:1].upper()}{MORE_ROOM[1:]}"
    if names and all(name.startswith(NOT_READ) for name in names):
        return f"{more_room}."
    return f"{WHOLE[:1].upper()}{WHOLE[1:]}. If they were whole, {MORE_ROOM}."


def _captured(case: Case) -> set[str]:
    """Which directions alone were captured, if that is what all findings say."""
    found = {str(one.details.get("captured") or "") for one in case.bundle.findings}
    return set() if "" in found else found


def _lost_now(case: Case) -> str:
    if _captured(case):
        return "Conclude nothing about these connections, also not that requests went unanswered."
    return "Do not conclude from what is missing: counts, unanswered requests and offsets of that time."


def _one_way(case: Case) -> str:
    details = [one.details for one in case.bundle.findings]
    servers = sorted({str(some.get("server")) for some in details if some.get("captured") == "requests"})
    answering = sorted({str(some["answering"]) for some in details if some.get("answering")})
    if answering:
        return f"{listed(answering)} answers what {listed(servers)} is asked: the capture is beside a translation"
    (captured, *others) = sorted(_captured(case))
    servers = sorted({str(some.get("server")) for some in details})
    only = f"only {captured}" if not others else "only one direction"
    return f"The capture holds {only} of the connections to {listed(servers)}: nothing on them was judged"


def _lost(case: Case) -> str:
    if _captured(case):
        return _one_way(case)
    lost = sum(int(one.details.get("bytes_lost") or 0) for one in case.bundle.findings)
    agents = sorted({str(one.row["subject"]).partition("/")[0] for one in case.bundle.findings})
    names = sorted({entity[-1] for entity in case.bundle.named.get("client", ())})
    of = f" of {listed(names)}" if names else ""
    but = "what is said of them is incomplete" if names else "what was not seen may have happened"
    return f"The capture ({listed(agents)}) lost {pluralize(lost, 'byte')}{of}: {but}"


class CaptureLoss(Rule):
    """The capture lost bytes, so that some of what the tables say is incomplete."""

    name = "capture_loss"
    title = "Capture lost bytes"
    protocol = "capture"
    severities = ("warning",)
    reads = ("gaps", "exchanges", "waiting")
    advice = (ADVICE, DROPPED, FILE_LOST, ONE_WAY)
    urgency = LATER
    texts = Texts(
        headline=_lost,
        now=_lost_now,
        fix=_whole,
        reasoning=f"{SEEN}sequence numbers of TCP show the holes, `bronze.gaps` lists them.",
        source=nobody,
        affected=own_clients,
    )
    gathered = OF_AGENT
    is_of_capture = True

    @classmethod
    def sql(cls, case: Case) -> str | None:
        """Its rows of gaps."""
        del case
        return "FROM bronze.gaps ORDER BY ts"
