"""Whether who was refused got on: symptoms are marked with the time of their client's next success.

A refusal that is followed by a success is a part of the protocol: a rebalance, an election, a negotiation. What counts
is what is refused and stays so. Only successes of those are looked up who were refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.schema.table import api_names
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.kafka.api_groups import NAMING_THINGS
from pipeline.analysis.rules.kafka.commits.commit_rejected import CommitRejected
from pipeline.analysis.rules.kafka.refusals import THING, about_of
from pipeline.analysis.rules.kafka.repaired_commits import commit_repairs
from pipeline.analysis.rules.kafka.symptoms import AUTH_ERRORS, LOGIN_ERRORS
from pipeline.analysis.tables import ADDRESS, Tables, numbers

_BETWEEN = "\x1f"
_MEANWHILE_US = 5_000_000
"""What was sent before a client learned of a refusal is refused a little later than what it sent elsewhere since."""
_HOST = "host_of(client)"

_THINGS = f"""
    unnest(CASE WHEN api_key IN {numbers(*NAMING_THINGS)} AND regexp_matches(request_body, '{THING}')
        THEN regexp_extract_all(request_body, '{THING}', 1) ELSE [''] END)
"""


def _key(*columns: str) -> str:
    return f"concat_ws('{_BETWEEN}', {', '.join(columns)})"


def _served(*place: str) -> str:
    """When a client wrote to a place, or read of it."""
    key = _key("cluster", *place, "coalesce(client_id, '')", _HOST)
    return f"""
        SELECT {key} AS key, epoch_us(ts) AS us, client, server FROM events
        WHERE kind IN ('produced', 'fetched', 'listed') AND coalesce(error_code, 0) = 0
    """


def _answered(what: str, without: Sequence[int], other_than: Sequence[int]) -> str:
    """When a client was answered without some errors, by apis other than some."""
    key = _key(ADDRESS["server"], "coalesce(client_id, '')", "client_ip", what)
    return f"""
        SELECT {key} AS key, epoch_us(response_ts) AS us, {ADDRESS["client"]} AS client,
            {ADDRESS["server"]} AS server FROM exchanges
        WHERE protocol = 'kafka' AND status = 'paired' AND api_key NOT IN {numbers(*other_than)}
            AND NOT list_has_any(coalesce(error_codes, []), {list(numbers(*without))})
    """


_MEMBER = _key("cluster", "group_id", "client")
_IN_THE_GROUP = f"""
    SELECT {_MEMBER} AS key, epoch_us(ts) AS us, client, server
    FROM states WHERE kind IN ('join', 'heartbeat', 'assignment') AND error_code = 0
    UNION ALL SELECT {_MEMBER}, epoch_us(ts), client, server FROM events WHERE kind IN ('committed', 'txn_committed')
"""
_LOGINS = tuple(api_names()[api] for api in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
_TO_GET_IN = (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE)
_LET_IN = " UNION ALL ".join(_answered(what, AUTH_ERRORS, _TO_GET_IN) for what in ("''", "api_name"))

_KINDS = {
    ApiKey.PRODUCE: "produced",
    ApiKey.FETCH: "fetched",
    ApiKey.LIST_OFFSETS: "listed",
    ApiKey.OFFSET_COMMIT: "committed",
    ApiKey.TXN_OFFSET_COMMIT: "txn_committed",
    ApiKey.OFFSET_FETCH: "fetched_commit",
}
_NAMES = {api_names()[api]: api for api in _KINDS}
"""Keys of these apis by their names."""
_BY_KIND = " ".join(f"WHEN '{kind}' THEN {int(api)}" for api, kind in _KINDS.items())
_ACCEPTED = f"""
    SELECT {_key("CASE kind " + _BY_KIND + " END", "cluster", "topic", "partition", "coalesce(client_id, '')", _HOST)}
        AS key, epoch_us(ts) AS us, client, server
    FROM events WHERE kind IN {tuple(_KINDS.values())} AND coalesce(error_code, 0) = 0
    UNION ALL
    SELECT {_key("api_name", "coalesce(client_id, '')", "client_ip", "thing")} AS key, epoch_us(response_ts) AS us,
        {ADDRESS["client"]} AS client, {ADDRESS["server"]} AS server
    FROM (SELECT *, {_THINGS} AS thing FROM exchanges
        WHERE protocol = 'kafka' AND status = 'paired' AND coalesce(len(error_codes), 0) = 0
            AND api_name IN (SELECT api_name FROM doubts))
"""
"""When a client had a partition accepted by an api, and when all that it asked of an api, of one thing or of any."""

Key = Callable[[str, Shown], tuple[object, ...]]


def _of_partition(cluster: str, one: Shown) -> tuple[object, ...]:
    return cluster, one.topic, one.partition, one.client_id or "", one.client_ip


def _of_topic(cluster: str, one: Shown) -> tuple[object, ...]:
    if one.partition is not None:
        return _of_partition(cluster, one)
    return cluster, one.topic, one.client_id or "", one.client_ip


def _of_member(cluster: str, one: Shown) -> tuple[object, ...]:
    return cluster, one.group_id, one.client


def _of_api(_: str, one: Shown) -> tuple[object, ...]:
    return one.server, one.client_id or "", one.client_ip, one.api_name


def _of_login(_: str, one: Shown) -> tuple[object, ...]:
    # Who may log in may still not do everything: of what is forbidden, the same api must succeed.
    is_login = one.what in LOGIN_ERRORS and one.api_name in _LOGINS
    return one.server, one.client_id or "", one.client_ip, "" if is_login else one.api_name


def _of_refusal(cluster: str, one: Shown) -> tuple[object, ...]:
    api = _NAMES.get(one.api_name)
    if one.partition is not None and api is not None:
        return int(api), cluster, one.topic, one.partition, one.client_id or "", one.client_ip
    thing = about_of(one.subject, one.what) if one.topic is None else ""
    return one.api_name, one.client_id or "", one.client_ip, thing


_SUCCESSES: Mapping[str, tuple[Key, str]] = {
    "zombie_member": (_of_member, _IN_THE_GROUP),
    "stale_metadata": (_of_partition, _served("topic", "partition")),
    "fenced_leader_epoch": (_of_partition, _served("topic", "partition")),
    "unknown_topic_loop": (_of_topic, f"{_served('topic')} UNION ALL {_served('topic', 'partition')}"),
    "unsupported_version": (
        _of_api,
        _answered("api_name", [KafkaError.UNSUPPORTED_VERSION], [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE]),
    ),
    "auth_failed": (_of_login, _LET_IN),
    "request_refused": (_of_refusal, _ACCEPTED),
}
"""By rule: whose success is meant, and the query that gives all successes with the same key."""
_COMMITS = "commit_rejected"
_NEXT = """
    WITH succeeded AS (SELECT * FROM ({successes}) SEMI JOIN doubts USING (key))
    SELECT doubts.number, succeeded.us FROM doubts
    ASOF JOIN succeeded ON doubts.key = succeeded.key AND doubts.us < succeeded.us
"""
_SAME = "t.key = {0}.key AND t.server = {0}.server"
_BESIDE = f"""
    WITH counted AS (
        SELECT key, us, client, server, row_number() OVER (PARTITION BY key, server ORDER BY us) AS number,
            row_number() OVER (PARTITION BY key, server, client ORDER BY us) AS own
        FROM ({{successes}}) SEMI JOIN tried USING (key, server)
    )
    SELECT t.key, t.client, t.last_us FROM tried AS t
        ASOF LEFT JOIN counted AS since ON {_SAME.format("since")} AND t.first_us >= since.us
        ASOF LEFT JOIN counted AS until ON {_SAME.format("until")} AND t.until_us >= until.us
        ASOF LEFT JOIN counted AS own_since
            ON {_SAME.format("own_since")} AND t.client = own_since.client AND t.first_us >= own_since.us
        ASOF LEFT JOIN counted AS own_until
            ON {_SAME.format("own_until")} AND t.client = own_until.client AND t.until_us >= own_until.us
    WHERE coalesce(until.number, 0) > coalesce(since.number, 0)
        AND coalesce(own_until.own, 0) = coalesce(own_since.own, 0)
"""
"""Who is refused again and again on a connection, and succeeds on none of it, while another connection of the same name
and host to that server succeeds, is another process."""
_NEXT_BESIDE = """
    WITH succeeded AS (SELECT * FROM ({successes}) SEMI JOIN beside USING (key)),
    began AS (SELECT key, client, min(us) AS us FROM succeeded GROUP BY ALL),
    taken_over AS (
        SELECT b.key, b.client, o.us FROM beside AS b ASOF JOIN began AS o ON b.key = o.key AND b.last_us < o.us
    )
    SELECT d.number, least(s.us, t.us) AS us FROM (FROM doubts SEMI JOIN beside USING (key, client)) AS d
        ASOF LEFT JOIN succeeded AS s ON d.key = s.key AND d.client = s.client AND d.us < s.us
        LEFT JOIN taken_over AS t ON d.key = t.key AND d.client = t.client
"""
"""What counts for such a one: its own success, or that of a connection which succeeds first after its last refusal."""


def named(found: Iterable[Shown], catalog: ClusterCatalog) -> list[Shown]:
    """The same symptoms with names of topics where only their id was on the wire."""
    names = catalog.names
    return [
        one._replace(topic=names[one.topic], subject=one.subject.replace(one.topic, names[one.topic]))
        if one.topic in names
        else one
        for one in found
    ]


def _beside(refused: Iterable[tuple[str, str | None, str, int]], successes: str, tables: Tables) -> pa.Table | None:
    """Connections (key, client, time of the last refusal) beside which another process of the same name succeeds.

    Args:
        refused: key, address, server and time of each refusal.
        successes: the query for them.
        tables: with ``doubts``.
    """
    times: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for key, client, server, us in refused:
        if client is not None:
            times[key, client, server].append(us)
    tried = [(*name, min(some), max(some)) for name, some in times.items() if max(some) - min(some) > _MEANWHILE_US]
    if not tried:
        return None
    names = ("key", "client", "server", "first_us", "last_us")
    columns = {name: list(column) for name, column in zip(names, zip(*tried, strict=True), strict=True)}
    tables.add("tried", pa.table({**columns, "until_us": [us - _MEANWHILE_US for us in columns["last_us"]]}))
    beside = tables.table(_BESIDE.format(successes=successes))
    return beside if beside.num_rows else None


def _connection(one: Shown) -> str | None:
    """The address of who was refused; None where each try has a connection of its own: after a failed login."""
    return None if one.what in LOGIN_ERRORS else one.client


def with_repairs(
    found: Sequence[Shown],
    tables: Tables,
    catalog: ClusterCatalog,
    ends: Mapping[str, int],
    settings: CommitRejected.Thresholds,
) -> list[Shown]:
    """The same symptoms, each with its ``healed_us``.

    Args:
        found: symptoms.
        tables: ``exchanges``, ``events`` and ``states``.
        catalog: clusters as known now.
        ends: by cluster the time of the last exchange, µs since the epoch.
        settings: when a commit is repaired.
    """
    clusters = catalog.clusters_at((one.server, one.us) for one in found)
    by_rule: defaultdict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(found):
        if one.rule in _SUCCESSES or one.rule == _COMMITS:
            by_rule[one.rule].append(number)
    healed: dict[int, int] = {}
    for rule, indices in by_rule.items():
        if rule == _COMMITS:
            refused = {number: (clusters[number], found[number]) for number in indices}
            healed |= commit_repairs(refused, tables, ends, settings)
            continue
        key, successes = _SUCCESSES[rule]
        keys = [_BETWEEN.join(map(str, key(clusters[number], found[number]))) for number in indices]
        answered = [found[number].us + found[number].latency_us for number in indices]
        apis = [found[number].api_name for number in indices]
        clients = [_connection(found[number]) for number in indices]
        columns = {"number": indices, "key": keys, "us": answered, "api_name": apis, "client": clients}
        tables.add("doubts", pa.table({**columns, "client": pa.array(clients, pa.string())}))
        healed |= {row.number: row.us for row in tables.rows(_NEXT.format(successes=successes))}
        servers = [found[number].server for number in indices]
        if beside := _beside(zip(keys, clients, servers, answered, strict=True), successes, tables):
            tables.add("beside", beside)
            for row in tables.rows(_NEXT_BESIDE.format(successes=successes)):
                healed.pop(row.number, None)
                healed |= {} if row.us is None else {row.number: row.us}
    return [one._replace(healed_us=healed.get(number)) if number in healed else one for number, one in enumerate(found)]
