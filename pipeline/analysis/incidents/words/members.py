"""Words for incidents that begin with members of groups, clients, producers and brokers of Kafka."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.incidents.case import Case, arg, begun, count, listed, moment
from pipeline.analysis.incidents.words import refusals
from pipeline.analysis.incidents.words.model import (
    LATER,
    LOSES,
    REFUSED,
    SEEN,
    SLOW,
    WASTES,
    WHY_IS_NOT,
    Words,
    advised,
    never,
    not_why,
    own_clients,
    topic_names,
    topics,
)
from pipeline.analysis.libraries import COOPERATIVE_ASSIGNOR
from pipeline.analysis.rules.model import seconds

_SOME = 0.1
"""A share of the time from which on rebalances are worth a word."""


def _storm(case: Case) -> str:
    every_us = case.details.get("interval_us")
    if every_us:
        return (
            f"{case.who} joins group {case.group} and ends again and again, {count(case.times, 'time')}, usually "
            f"{seconds(every_us)} apart: the group rebalances each time"
        )
    generations = len({kind for one in case.bundle.findings for kind in one.details.get("kinds", [])})
    many = count(generations, "generation") if generations else "again and again"
    join = "joins" if len(case.callers) == 1 else "join"
    who = _comers(case) or f"{case.at or 'its members'} {join} again and again"
    return f"Group {case.group} keeps rebalancing ({many}){_standstill(case)}: {who}"


def _comers(case: Case) -> str:
    """Who came more often than a deploy explains, and how often."""
    stated = case.details.get("comers")
    some = stated.items() if isinstance(stated, dict) else ()
    return listed(f"{name} came {count(int(times), 'time')}" for name, times in some)


def _storm_now(case: Case) -> str:
    if _comers(case):
        return (
            f"Look at the log of whoever keeps joining ({_comers(case)}) and stop or repair that member: the others "
            "continue without it."
        )
    return (
        f"Find the member that keeps joining and leaving ({case.clients}) and stop or repair that one: the others "
        "continue without it."
    )


def _standstill(case: Case) -> str:
    """How much of the time went into rebalances, if that is known; "hardly reads" only of a group that stays behind."""
    unstable_us = sum(int(one.details.get("unstable_us") or 0) for one in case.bundle.findings)
    span_us = sum(max(one.last_us - one.first_us, 0) for one in case.bundle.findings)
    if not span_us or unstable_us < _SOME * span_us:
        return ""
    stays_behind = any(one.details.get("has_read_all") is False for one in case.bundle.findings)
    took = f"{seconds(unstable_us)} of {seconds(span_us)} in rebalances"
    return f" and hardly reads, {took}" if unstable_us >= span_us / 2 and stays_behind else f", {took}"


def _refused(case: Case) -> list[str]:
    """Clients whose requests a broker does not take."""
    refused = [node.bundle for node in case.tree.nodes if node.bundle.rule == "unsupported_version"]
    return sorted({entity[-1] for bundle in refused for entity in bundle.named.get("client", ())})


def _refusing(case: Case) -> str:
    """The brokers that do not take their requests."""
    refused = [node.bundle for node in case.tree.nodes if node.bundle.rule == "unsupported_version"]
    servers = sorted({entity[-1] for bundle in refused for entity in bundle.named.get("server", ())})
    return f"Broker {servers[0]}" if len(servers) == 1 else f"Each of {len(servers)} brokers" if servers else "A broker"


def _with_hosts(case: Case, names: Iterable[str]) -> str:
    hosts = {caller.client_id: caller for one in case.tree.findings for caller in one.callers if caller.host}
    return listed(str(hosts.get(name, name)) for name in names)


def _old_clients(case: Case) -> str:
    clients = _refused(case)
    names = sorted({str(one.row["subject"]) for one in case.bundle.findings if one.rule == case.bundle.rule})
    first = ""
    if clients:
        refused = [one for one in case.tree.findings if one.rule == "unsupported_version"]
        kinds = sorted({str(one.row["subject"]).rpartition("/")[2] for one in refused})
        first = f"{_refusing(case)} refuses {_with_hosts(case, clients)} ({listed(kinds)}); "
        names = [name for name in names if name not in clients]
        if not names:
            return f"{first}the library is too old for it, and for Kafka 4"
    many = "1 client is" if len(names) == 1 else f"{len(names)} clients are"
    return f"{first}{many} too old for Kafka 4: {_with_hosts(case, names)}"


def _old_clients_now(case: Case) -> str:
    refused = _refused(case)
    now = f"Update the library of {listed(refused)}: it cannot work with its broker. " if refused else ""
    return f"{now}Do not take brokers to Kafka 4 before these clients are updated."


def _committed_since(case: Case) -> str:
    """Groups that stand in the new topic."""
    names = case.details.get("committed_since")
    known = listed(name for name in names if isinstance(name, str)) if isinstance(names, list) else ""
    return f"; those that committed since need nothing: {known}" if known else ""


def _late(case: Case) -> str:
    """Which api how late, the one that the broker itself is slow at first."""
    apis = case.details.get("apis")
    slow = apis.items() if isinstance(apis, dict) else ()
    return listed(f"{api} up to {float(one.get('peak_us') or 0) / 1_000_000:.1f} s" for api, one in slow) or (
        f"up to {float(case.details.get('peak') or 0) / 1_000_000:.1f} s"
    )


def _asks_new_protocol(case: Case) -> bool:
    """Whether all that was refused is the protocol of KIP-848: the client is newer than what the brokers run."""
    return all("/ConsumerGroupHeartbeat " in str(one.row["subject"]) for one in case.bundle.findings)


_ID_TAKEN = "FENCED_INSTANCE_ID"
"""Another process has the group.instance.id: a restart would take it back."""
_SLOW_BROKER = (
    "Watch the broker's request queue and disk (RequestHandlerAvgIdlePercent, log flush times) and its garbage "
    "collection; move partitions away from a broker that has too many."
)

MEMBERS: dict[str, Words] = {
    "rebalance_storm": Words(
        _storm,
        _storm_now,
        "If it is too slow, raise max.poll.interval.ms or lower max.poll.records; if it pauses, raise "
        f"session.timeout.ms. group.instance.id, {COOPERATIVE_ASSIGNOR} make the remaining rebalances cheap.",
        f"{SEEN}each join and each new generation. {WHY_IS_NOT}",
        REFUSED,
        is_cause=never,
    ),
    "zombie_member": Words(
        lambda case: (
            f"{case.who} kept working for group {case.group} after the coordinator removed it ({case.kinds}): "
            "its work may be done twice"
        ),
        lambda case: (
            refusals.now(case)
            if case.kinds == _ID_TAKEN
            else f"Restart {case.clients}, and check whether its output was written twice: group {case.group} "
            "continued without it."
        ),
        lambda case: (
            refusals.fix(case)
            if case.kinds == _ID_TAKEN
            else "Keep the work between two polls below max.poll.interval.ms (lower max.poll.records), give each "
            "instance a group.instance.id of its own, and stop working on UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION."
        ),
        f"{SEEN}it was told so with each answer.",
        LOSES,
    ),
    "topic_recreated": Words(
        lambda case: (
            f"Topic {case.places} was deleted and created again: offsets that groups committed belong to the old topic"
        ),
        lambda case: (
            "Check each group that reads it (`kafka-consumer-groups.sh --bootstrap-server BROKER --describe "
            f"--all-groups`){_committed_since(case)}. Reset only a group whose offset was committed before "
            f"{moment(case.lead.last_us)[11:]} UTC, or is beyond the log's end: stop it, set it to the beginning "
            f"(`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-earliest --topic "
            f"{arg(case.topic)} --group GROUP --execute`), start it again."
        ),
        "Delete records (`kafka-delete-records.sh`) instead of the topic, or delete its groups' offsets with it.",
        f"{SEEN}the topic's name has another id now.",
        LOSES,
        affected=topics,
    ),
    "unknown_topic_loop": Words(
        lambda case: f"{case.who} asks for topic {case.topic} again and again: the cluster has none of this name",
        lambda case: (
            f"Correct the name in the configuration of {case.clients}, or create it: `kafka-topics.sh "
            f"--bootstrap-server BROKER --create --topic {arg(case.topic)}`."
        ),
        "Create topics before their clients start, and take topics that were deleted out of the configuration.",
        f"{SEEN}UNKNOWN_TOPIC_OR_PARTITION is the broker's own answer.",
        REFUSED,
        affected=own_clients,
    ),
    "fenced_leader_epoch": Words(
        lambda case: f"{case.who} asks for {case.places} with an outdated leader epoch, and gets nothing",
        lambda case: f"Restart {case.clients} if it does not recover by itself: its metadata is outdated.",
        "Update its library; metadata.max.age.ms (Java), topic.metadata.refresh.interval.ms (librdkafka) bound how old "
        "metadata may become.",
        f"{SEEN}FENCED_LEADER_EPOCH is the broker's own answer.",
        REFUSED,
        affected=own_clients,
    ),
    "stale_metadata": Words(
        lambda case: f"{case.who} and broker {case.server} do not agree on the leader of {case.places} ({case.kinds})",
        lambda case: (
            "Ask who leads: `kafka-topics.sh --bootstrap-server BROKER --describe --topic "
            f"{arg('|'.join(topic_names(case)))}`. If the broker is right, restart {case.clients}; if not, "
            f"restart broker {case.server}: it gets no metadata."
        ),
        "metadata.max.age.ms (Java), topic.metadata.refresh.interval.ms (librdkafka); watch the controller's "
        "connection to each broker.",
        f"{SEEN}these are the broker's own answers.",
        REFUSED,
        affected=own_clients,
    ),
    "fetch_session_churn": Words(
        lambda case: (
            f"{case.who} asks for a fetch session in vain: the broker's cache of them is full, or it keeps none, and "
            "all partitions are sent in full each time"
            if case.details.get("in_vain")
            else f"{case.who} begins a new fetch session with each fetch: all partitions are sent in full each time"
        ),
        lambda _case: "Nothing has to be stopped.",
        "Keep one consumer instead of making one for each read; raise max.incremental.fetch.session.cache.slots (1000) "
        "of the brokers if many consumers share them.",
        f"{SEEN}session ids and epochs of the requests.",
        WASTES,
        affected=own_clients,
    ),
    "unsupported_version": Words(
        lambda case: (
            f"A broker ({case.server}) does not take requests of {case.who}: "
            f"{listed(sorted({str(one.row['subject']).rpartition('/')[2] for one in case.bundle.findings}))}"
        ),
        lambda case: (
            begun(advised(case, "now"))
            if _asks_new_protocol(case)
            else f"Update the library of {case.clients}; until then it cannot work with this broker."
        ),
        lambda case: (
            begun(advised(case, "fix"))
            if _asks_new_protocol(case)
            else "Kafka 4 dropped what KIP-896 lists: kafka-clients 2.1 or later, librdkafka 1.0 or later. A client "
            "newer than its broker must ask first (librdkafka: api.version.request=true)."
        ),
        f"{SEEN}the broker's answer, or that it closed the connection.",
        REFUSED,
        affected=own_clients,
    ),
    "kip896_incompatible_client": Words(
        _old_clients,
        _old_clients_now,
        "kafka-clients 2.1 or later, librdkafka 1.0 or later, other libraries of 2019 or later.",
        f"{SEEN}the versions of their requests.",
        LATER,
        affected=own_clients,
        source=lambda case: listed(sorted({str(one.row["subject"]) for one in case.bundle.findings})),
    ),
    "unanswered_requests": Words(
        lambda case: (
            f"Broker {case.server} left {count(case.times, 'request')} of {case.who} without an answer ({case.kinds})"
        ),
        lambda case: (
            f"Look whether broker {case.server} hangs (`jcmd PID Thread.print`, its garbage collection and disk), and "
            "restart it if it does. What was produced may or may not be written."
        ),
        f"{_SLOW_BROKER} request.timeout.ms of the clients must be longer than what it takes.",
        f"{SEEN}the connections ended without these answers. {not_why('broker')}",
        REFUSED,
        source=lambda case: f"broker {case.server}",
        affected=own_clients,
        is_cause=never,
    ),
    "latency_outlier": Words(
        lambda case: f"Broker {case.server} answered {_late(case)} late: {case.who} waited",
        lambda case: (
            f"Look at broker {case.server} now: garbage collection, disk, an election, replicas that lag (acks=all "
            "waits for them). Restart it if it hangs."
        ),
        _SLOW_BROKER,
        f"{SEEN}the time between request and answer. {not_why('broker')}",
        SLOW,
        source=lambda case: f"broker {case.server}",
        affected=own_clients,
        is_cause=never,
    ),
    "throttled": Words(
        lambda case: (
            f"Brokers hold {case.who} back, {float(case.details.get('total') or 0) / 1000:.1f} s in all: it is above "
            "its quota"
        ),
        lambda case: (
            "If it may do more: `kafka-configs.sh --bootstrap-server BROKER --alter --entity-type clients "
            f"--entity-name {arg(case.first_caller.client_id or 'CLIENT_ID')} --add-config "
            "producer_byte_rate=N,consumer_byte_rate=N`."
        ),
        "Set quotas by what is agreed, or let the client do less (batches, compression.type, fewer instances).",
        f"{SEEN}throttleTimeMs in the brokers' answers.",
        SLOW,
        affected=own_clients,
    ),
}
