"""Each api of Kafka's, refused each time with each code: traffic in which no pair may go unreported.

``python -m tests.pipeline.analysis.rules.kafka.refused_everywhere [SECONDS]`` prints the matrix, of requests so far
apart: a line for each api and code, and which rules report it, or why none does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.schema.table import api_names
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import HEALTH
from pipeline.analysis.rules.rule import all_rules
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import Landed
from pipeline.settings import StreamSettings
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


def pairs(apis: Iterable[int] = APIS) -> Iterator[Pair]:
    """All pairs; 0 is no error."""
    for api in apis:
        yield from (Pair(int(api), int(code)) for code in KafkaError if code != KafkaError.NONE)


def landed(some: Iterable[Pair], step_s: int = STEP_S) -> Landing:
    """Each client sends requests, so many seconds apart, and gets the same code to each of them."""
    landing, times = Landing(), max(TIMES, LEAST_S // step_s)
    for number, pair in enumerate(some):
        names = f"-{pair.api}-{pair.code}."
        recipe = Recipe(
            number, (pair.api,), (pair.code,), width=1, depth_width=1, step_us=step_s * 1_000_000, names=names
        )
        maker = Maker(recipe, first_exchange=number * times, connection=number, start_us=START_US + number, servers=1)
        for _ in range(times):
            maker.add_to(landing)
    return landing


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


def main(step_s: int = STEP_S) -> int:
    """Print the matrix; 1 if a pair is silent that is not declared health."""
    some = list(pairs())
    rules = {client: found for api in APIS for client, found in reported(judged(landed(pairs([api]), step_s))).items()}
    known = {rule.name for rule in all_rules()}
    silent = 0
    for pair in some:
        found = sorted(rules.get(pair.client, set()) & known)
        silent += not found and not pair.is_health
        print(pair.name, ", ".join(found) or ("health" if pair.is_health else "SILENT"))
    print(f"{len(some)} pairs, {silent} silent")
    return int(bool(silent))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
