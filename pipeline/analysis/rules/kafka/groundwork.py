"""What the rules of Kafka share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.groundwork import Ground, Groundwork
from pipeline.analysis.rules.kafka.brokers.latency_outlier import beside_throttling, on_settled_connections
from pipeline.analysis.rules.kafka.clients.traffic import Traffic, collect_traffic, newest_versions
from pipeline.analysis.rules.kafka.exchange_symptoms import exchange_symptoms
from pipeline.analysis.rules.kafka.groups.coming_and_going import Step, steps
from pipeline.analysis.rules.kafka.repairs import named, with_repairs
from pipeline.analysis.rules.kafka.speaking import in_words_of_libraries
from pipeline.analysis.rules.kafka.twins import named_apart
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.safety.guard import attempt
from pipeline.analysis.tables import Tables


class KafkaGroundwork(Groundwork):
    """Who uses which api, versions that brokers offer, who comes and goes; symptoms; processes and libraries."""

    @classmethod
    def prepare(cls, ground: Ground) -> None:
        """See the class."""
        tables, catalog, share = ground.tables, ground.catalog, ground.share
        traffic = share("traffic", partial(collect_traffic, tables, catalog), list[Traffic])
        for one in traffic:
            ground.ends[one.cluster] = max(one.last_us, ground.ends.get(one.cluster, 0))
            ground.server_ends[one.server] = max(one.last_us, ground.server_ends.get(one.server, 0))
        ground.known["traffic"] = traffic
        ground.known["newest"] = share("offered versions", partial(newest_versions, tables, catalog), dict)
        ground.known["steps"] = share("joins and departures", lambda: list(steps(tables, catalog)), list[Step])

    @classmethod
    def symptoms(cls, ground: Ground) -> Iterable[Shown]:
        """Symptoms of exchanges, but for what is health to be refused once."""
        tables, catalog, settings = ground.tables, ground.catalog, ground.settings
        shown = on_settled_connections(beside_throttling(named(exchange_symptoms(tables, settings), catalog)), tables)
        return with_repairs(shown, tables, catalog, ground.ends, settings)

    @classmethod
    def described(cls, findings: Sequence[Finding], tables: Tables) -> Sequence[Finding]:
        """Names processes apart that share client id and host, and speaks in the words of client libraries."""
        found = list(findings)
        apart = attempt("processes of findings", lambda: named_apart(found, tables), lambda: found)
        return attempt("libraries of findings", lambda: in_words_of_libraries(apart, tables), lambda: apart)
