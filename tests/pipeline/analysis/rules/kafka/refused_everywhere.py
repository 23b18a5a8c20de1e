"""Each api of Kafka's, refused each time with each code: traffic in which no pair may go unreported.

``python -m tests.pipeline.analysis.rules.kafka.refused_everywhere [SECONDS [ACCEPTED]]`` prints the matrix, of requests
so far apart, with this many accepted ones of another api after each: a line for each api and code, and which rules
report it, or why none does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.schema.table import api_names
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import HEALTH
from pipeline.analysis.rules.rule import all_rules
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import Landed
from pipeline.tables import GAPS
from tests.hostile.traffic import START_US, Landing, Maker, Recipe
from tests.pipeline.rows import arrow

APIS = (
    ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS, ApiKey.SASL_HANDSHAKE, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_CONFIGS, ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_GROUPS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.STREAMS_GROUP_HEARTBEAT,
)  # fmt: skip
"""What clients send."""
TIMES, STEP_S, LEAST_S = 5, 20, 90
"""How often each is refused at least, how far apart, and for how long at least."""
SOON_US, NEXT_US = 50_000, 10_000
"""How soon after a refused request accepted ones follow, and how far apart, µs."""
SASL_APIS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


@dataclass(frozen=True, slots=True)
class Pair:
    """An api and the code that each of its requests is answered with."""

    api: int
    code: int

    @property
    def client(self) -> str:
        """The client that sends these requests, and no others."""
        return f"client-{self.api}-{self.code}."

    @property
    def name(self) -> str:
        """For people."""
        return f"{api_names()[self.api]} {KAFKA.meaning(self.api, self.code).name}"

    @property
    def is_health(self) -> bool:
        """Whether the table of codes declares it a part of normal operation."""
        return KAFKA.meaning(self.api, self.code).kind == HEALTH

    @property
    def is_login(self) -> bool:
        """Whether it refuses a login: a client whose other requests are accepted is logged in."""
        return self.api in SASL_APIS and KAFKA.meaning(self.api, self.code).area == "login"

    def reason(self, accepted: int = 0) -> str:
        """Why no rule needs to report it; empty: nothing excuses that. ``accepted``: how many other requests are."""
        return "health" if self.is_health else "logged in" if accepted and self.is_login else ""


def pairs(apis: Iterable[int] = APIS) -> Iterator[Pair]:
    """All pairs; 0 is no error."""
    for api in apis:
        yield from (Pair(int(api), int(code)) for code in KafkaError if code != KafkaError.NONE)


def landed(some: Iterable[Pair], step_s: int = STEP_S, accepted: int = 0) -> Landing:
    """Each client sends requests, this many seconds apart, and gets the same code to each of them.

    Args:
        some: who sends what.
        step_s: from one to the next.
        accepted: how many requests of another api follow each on its connection, in a burst, and are accepted.
    """
    landing, times, step_us = Landing(), max(TIMES, LEAST_S // step_s), step_s * 1_000_000
    for number, pair in enumerate(some):
        first, start_us, names = number * times * (1 + accepted), START_US + number, f"-{pair.api}-{pair.code}."
        other = int(ApiKey.FIND_COORDINATOR if pair.api == ApiKey.METADATA else ApiKey.METADATA)
        recipe = Recipe(number, (pair.api,), (pair.code,), step_us=step_us, names=names)
        refused = Maker(recipe, first_exchange=first, connection=number, start_us=start_us, servers=1)
        for turn in range(times):
            refused.add_to(landing)
            burst = Maker(
                replace(recipe, apis=(other,), errors=(0,), step_us=NEXT_US),
                first_exchange=first + times + turn * accepted, connection=number, servers=1,
                start_us=start_us + (turn + 1) * step_us + SOON_US,
            )  # fmt: skip
            for _ in range(accepted):
                burst.add_to(landing)
    return landing


def silent(some: Iterable[Pair], step_s: int = STEP_S, accepted: int = 0) -> list[str]:
    """Of these pairs, by name, those that no rule reports and that nothing excuses."""
    asked = list(some)
    rules = reported(judged(landed(asked, step_s, accepted)))
    return [pair.name for pair in asked if pair.client not in rules and not pair.reason(accepted)]


def judged(landing: Landing) -> Diagnosis:
    """What all rules find."""
    return diagnose(Landed(landing.table(), arrow(GAPS), None), StreamSettings())


def reported(found: Diagnosis) -> dict[str, set[str]]:
    """By client the rules that report it above info."""
    rules: defaultdict[str, set[str]] = defaultdict(set)
    for row in found.findings.select(["rule", "severity", "subject", "summary", "details"]).to_pylist():
        if row["severity"] == "info":
            continue
        text = " ".join(str(row[name]) for name in ("subject", "summary", "details"))
        for word in text.replace('"', " ").replace("/", " ").split():
            if word.startswith("client-") and "." in word:
                rules[word[: word.index(".") + 1]].add(row["rule"])
    return rules


def main(step_s: int = STEP_S, accepted: int = 0) -> int:
    """Print the matrix; 1 if a pair is silent and nothing excuses it."""
    some = list(pairs())
    known = {rule.name for rule in all_rules()}
    excused = unreported = 0
    for api in APIS:
        rules = reported(judged(landed(pairs([api]), step_s, accepted)))
        for pair in pairs([api]):
            found, reason = sorted(rules.get(pair.client, set()) & known), pair.reason(accepted)
            excused += not found and bool(reason)
            unreported += not found and not reason
            print(pair.name, ", ".join(found) or reason or "SILENT", flush=True)
    print(f"{len(some)} pairs, {excused} silent for a reason, {unreported} without one")
    return int(bool(unreported))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
