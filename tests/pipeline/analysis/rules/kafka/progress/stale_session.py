"""A member that reads on in a session that is over: its commits silently stay away, while another member commits."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP = "tally"


def stale(
    *, period: int = 1, ill: int = 60, rebalance: bool = True, reads: bool = True, others: bool = True,
    after: int = 0, since: int = 0, cooperative: bool = False,
) -> Stage:  # fmt: skip
    """A member holds all partitions; another takes one of them, and then the first one commits nothing.

    Args:
        period: seconds between commits.
        ill: how long it commits nothing.
        rebalance: whether this begins with a rebalance, or both were there before.
        reads: whether the first member fetches further meanwhile.
        others: whether the second one commits.
        after: how long all is well again.
        since: when the capture begins.
        cooperative: whether what the second one gets is taken away in a rebalance before (KIP-429).
    """
    well = max(60, 5 * period)
    stage = Stage()
    first, second = (
        Client("app-1", GROUP, 42_001, "app-1-a"),
        Client("app-2", GROUP, 42_002, "app-2-b", host="10.0.0.6"),
    )
    held = {first: (0, 1, 2) if rebalance else (0, 1), second: () if rebalance else (2,)}
    if not rebalance:
        stage.join(0.15, second, [2])
    stage.join(0.1, first, held[first])
    for at in range(well + ill + after):
        end = 2 * (at + 1)
        is_ill = well <= at < well + ill
        if at == well and rebalance and cooperative:
            first, second = (_later(one) for one in (first, second))
            stage.join(at - 0.15, first, [0, 1])
            stage.join(at - 0.12, second, [])
        if at == well and rebalance:
            first, second = (_later(one) for one in (first, second))
            held = {first: (0, 1), second: (2,)}
            for offset, (member, some) in enumerate(held.items()):
                stage.join(at + 0.01 + offset / 50, member, some)
                stage.offset_fetch(at + 0.04 + offset / 50, member, dict.fromkeys(some, end - 2))
        for partition in range(3):
            stage.produce(at + 0.2 + partition / 50, partition, end - 2, 2)
        for member, some in held.items():
            stands = is_ill and member is first and not reads
            at_end = 2 * well if stands else end - 2
            parts = [(n, at_end, end, b"" if stands else records(end - 2, 2)) for n in some]
            if parts:
                stage.fetch(at + 0.4, member, *parts)
            stays_away = is_ill and (member is first or not others)
            if some and at % period == period - 1 and not stays_away:
                stage.commit(at + 0.6, member, dict.fromkeys(some, end))
            stage.heartbeat(at + 0.8, member)
    return stage.since(since)


def _later(one: Client) -> Client:
    return Client(one.name, one.group, one.port, one.member, one.generation + 1, one.host)


def rolling(*, period: int = 120, seconds: int = 330, commits: bool = True, again: bool = False) -> Stage:
    """Three members that commit each second are replaced by processes of a release that commits more seldom.

    Args:
        period: seconds between commits of the new release.
        commits: whether the first of the new processes commits at all.
        again: whether the third one stays.
    """
    stage = Stage()
    members = [Client(f"app-{n}", GROUP, 42_000 + n, f"app-{n}-old", host=f"10.0.0.{5 + n}") for n in range(3)]
    begun = [0, 0, 0]
    for n, member in enumerate(members):
        stage.join(0.1 + n / 50, member, [n])
    for at in range(seconds):
        end = 2 * (at + 1)
        if at in (60, 80, 100) and not (again and at == 100):
            new = (at - 60) // 20
            for n, one in enumerate(members):
                if n == new:
                    stage.leave(at + 0.01, one)
                    begun[n] = at
                name, port = (f"app-{n}-new", 43_000 + n) if n == new else (one.member, one.port)
                members[n] = Client(one.name, GROUP, port, name, one.generation + 1, one.host)
                stage.join(at + 0.02 + n / 50, members[n], [n])
                stage.offset_fetch(at + 0.04 + n / 50, members[n], {n: end - 2})
        for n, member in enumerate(members):
            stage.produce(at + 0.2 + n / 50, n, end - 2, 2)
            stage.fetch(at + 0.4 + n / 50, member, (n, end - 2, end, records(end - 2, 2)))
            is_due = (at - begun[n]) % period == period - 1 and (commits or n) if begun[n] else True
            if is_due:
                stage.commit(at + 0.6 + n / 50, member, {n: end})
            stage.heartbeat(at + 0.8 + n / 50, member)
    return stage
