"""Groups findings that belong together into trees: a root, and effects that each have one cause.

Findings of one rule that are one trouble of many subjects (``gathered`` of their rule) are taken together first.
Between such bundles is an edge where one of their rules states that the one may follow from the other, they share
the names that it asks for, and the cause began no later than the effect and was not long over by then. Of several
possible roots the one that explains most findings is taken, then the one that began first. Everything is ordered by
times and names of the data, never by how it came in.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from pipeline.analysis.rules.case.bundle import LEAST_LINGER_US, Bundle
from pipeline.analysis.rules.case.default_names import is_default_name
from pipeline.analysis.rules.case.entities import CLIENT, HOST, NAMESPACE, SERVER, TRANSACTION, Entity, Known
from pipeline.analysis.rules.case.tree import Edge, Node, Tree
from pipeline.analysis.rules.rule import (
    OF_AGENT,
    OF_ALL,
    OF_CLIENT,
    OF_CLUSTER,
    OF_GROUP,
    OF_NAMESPACE,
    OF_SERVER,
    OF_SUBJECT,
    OF_TOPIC,
    OF_TRANSACTION,
    edges_from,
    rule_named,
)

MOST_PAIRS = 200_000
"""Causes times effects that are compared; of more, each cause is compared with what began next to it."""
_KIND_OF = {OF_CLIENT: CLIENT, OF_SERVER: SERVER, OF_NAMESPACE: NAMESPACE, OF_TRANSACTION: TRANSACTION}


def trees_of(rows: Iterable[Mapping[str, Any]]) -> list[Tree]:
    """All findings as trees, those that began first before the others.

    Args:
        rows: as Finding.row gives them, in any order.
    """
    bundles = sorted(_bundles(_known(row) for row in rows), key=lambda bundle: bundle.order)
    effects = _edges_between(bundles)
    return _Forest(bundles, effects).trees()


def alone(row: Mapping[str, Any]) -> Tree:
    """A finding as a tree of its own."""
    return Tree((Node(Bundle((_known(row),))),))


def _known(row: Mapping[str, Any]) -> Known:
    return Known.of(row, rule_named(str(row["rule"])).subject)


def _bundles(found: Iterable[Known]) -> list[Bundle]:
    alike: defaultdict[tuple[str, ...], list[Known]] = defaultdict(list)
    for one in found:
        alike[_key(one)].append(one)
    return [bundle for some in alike.values() for same in _of_one_client(some) for bundle in _without_pauses(same)]


def _of_one_client(some: Sequence[Known]) -> Iterator[Sequence[Known]]:
    """Findings by client, cut where only a name that libraries give joins them: then hosts must."""
    names = [entity[-1] for entity in some[0].entities if entity[0] == CLIENT]
    if rule_named(some[0].rule).gathered != OF_CLIENT or not names or not all(map(is_default_name, names)):
        yield some
        return
    part_of: dict[Entity, list[Known]] = {}
    parts: dict[int, list[Known]] = {}
    for one in some:
        hosts = [entity for entity in one.entities if entity[0] == HOST]
        joined = {id(part_of[host]): part_of[host] for host in hosts if host in part_of}
        into = max(joined.values(), key=len, default=[])
        into.append(one)
        parts[id(into)] = into
        for number, part in joined.items():
            if part is not into:
                into += parts.pop(number)
                part_of.update({host: into for each in part for host in each.entities if host[0] == HOST})
        part_of.update(dict.fromkeys(hosts, into))
    yield from parts.values()


def _without_pauses(some: Iterable[Known]) -> Iterator[Bundle]:
    """Cut where nothing of it was seen for longer than all before lasted."""
    run: list[Known] = []
    last_us = 0
    for one in sorted(some, key=lambda one: (one.first_us, one.finding_id)):
        if run and rule_named(one.rule).gathered != OF_ALL:
            linger_us = max(LEAST_LINGER_US, last_us - run[0].first_us)
            if one.first_us > last_us + linger_us:
                yield Bundle(tuple(run))
                run = []
        last_us = max(last_us, one.last_us) if run else one.last_us
        run.append(one)
    if run:
        yield Bundle(tuple(run))


def _key(one: Known) -> tuple[str, ...]:
    """What findings that are reported at once have in common."""
    how = rule_named(one.rule).gathered or (OF_GROUP if one.group else OF_SUBJECT)
    cluster = str(one.row["cluster"])
    subject, topic = str(one.row["subject"]), one.row.get("topic")
    kind = _KIND_OF.get(how)
    names = sorted(entity[1] for entity in one.entities if entity[0] == kind)
    common = {
        OF_ALL: ("",),
        OF_CLUSTER: (cluster,),
        OF_AGENT: (subject.partition("/")[0],),
        OF_GROUP: (cluster, one.group) if one.group else None,
        OF_TOPIC: (cluster, str(topic)) if topic else None,
    }
    areas = (str(one.details.get("area") or ""),) if how == OF_NAMESPACE else ()
    found = (cluster, *areas, *names) if names else common.get(how)
    return (one.rule, how, *found) if found is not None else (one.rule, OF_SUBJECT, cluster, subject)


def _edges_between(bundles: Sequence[Bundle]) -> dict[int, dict[int, Edge]]:
    """By index of a cause, its effects by index, with the first edge of the table that joins them."""
    naming: defaultdict[tuple[str, Entity], list[int]] = defaultdict(list)
    for index, bundle in enumerate(bundles):
        for names in bundle.named.values():
            for entity in names:
                naming[bundle.rule, entity].append(index)
    found: dict[int, dict[int, Edge]] = {}
    nearest = _nearest(bundles, naming)
    for index, cause in enumerate(bundles):
        effects = found.setdefault(index, {})
        for edge in edges_from(cause.rule):
            alike = {
                other
                for some in _alike(cause, edge, naming)
                for other in (some if len(some) <= nearest else _around(some, index, nearest))
            }
            for other in sorted(alike):
                effect = bundles[other]
                if other in effects or not cause.shares(effect, edge.shares) or not cause.may_cause(effect):
                    continue
                if edge.shares != (CLIENT,) or cause.is_same_client(effect):
                    effects[other] = edge
    return found


def _alike(cause: Bundle, edge: Edge, naming: Mapping[tuple[str, Entity], list[int]]) -> Iterator[list[int]]:
    """What may follow from a bundle by an edge: of each name that it has, those that have it, too."""
    for entity in cause.named.get(edge.shares[0], frozenset()):
        if (some := naming.get((edge.effect, entity))) is not None:
            yield some


def _nearest(bundles: Sequence[Bundle], naming: Mapping[tuple[str, Entity], list[int]]) -> int:
    """How many with one name are looked at for each cause: all, unless that makes too many pairs."""
    sizes = [len(some) for cause in bundles for edge in edges_from(cause.rule) for some in _alike(cause, edge, naming)]
    return max(sizes, default=0) if sum(sizes) <= MOST_PAIRS else max(MOST_PAIRS // len(sizes), 1)


def _around(some: list[int], index: int, count: int) -> list[int]:
    """Those that began next to a cause."""
    begin = max(bisect_left(some, index) - count // 4, 0)
    return some[begin : begin + count]


@dataclass
class _Forest:
    """Takes trees out of what may follow from what."""

    bundles: Sequence[Bundle]
    effects: Mapping[int, Mapping[int, Edge]]
    _left: set[int] = field(default_factory=set)
    _followed: int = 0

    def trees(self) -> list[Tree]:
        """See trees_of."""
        self._left = set(range(len(self.bundles)))
        caused = {other for effects in self.effects.values() for other in effects}
        alone = [index for index in self._left if index not in caused and not self.effects.get(index)]
        found = [self._tree(index, {index}) for index in alone]
        reach = {index: self._reach(index) for index in self._left if index not in caused and self.effects.get(index)}
        # What is left of a reach only shrinks: whose size still is the same when its turn comes has the greatest.
        turns = [(-self._size(some), self.bundles[root].order, root) for root, some in reach.items()]
        heapify(turns)
        while turns:
            size, order, root = heappop(turns)
            reach[root] &= self._left
            now = -self._size(reach[root])
            if now != size:
                heappush(turns, (now, order, root))
                continue
            found.append(self._tree(root, reach[root]))
            self._left -= reach[root]
        return sorted(found, key=lambda tree: tree.root.order)

    def _size(self, some: set[int]) -> int:
        return sum(len(self.bundles[index].findings) for index in some)

    def _reach(self, root: int) -> set[int]:
        """All that may follow from a root; only what follows at once, where there was too much to follow before."""
        found, waiting = {root}, [root]
        while waiting and (len(found) == 1 or self._followed < MOST_PAIRS):
            effects = self.effects.get(waiting.pop(), {})
            self._followed += len(effects)
            for other in effects:
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def _tree(self, root: int, members: set[int]) -> Tree:
        """Each effect behind the nearest of its causes: the one with the longest way from the root."""
        depth = {root: 0}
        parents: dict[int, int] = {}
        for index in self._in_order(root, members):
            for other in self.effects.get(index, ()):
                if other in members and depth[index] + 1 > depth.get(other, 0):
                    depth[other], parents[other] = depth[index] + 1, index
        nodes = [Node(self.bundles[root])]
        children: defaultdict[int, list[int]] = defaultdict(list)
        for child, parent in sorted(parents.items()):
            children[parent].append(child)
        self._add(root, children, nodes)
        return Tree(tuple(nodes))

    def _in_order(self, root: int, members: set[int]) -> list[int]:
        """Causes before their effects."""
        seen: set[int] = set()
        order: list[int] = []
        waiting = [(root, False)]
        while waiting:
            index, is_done = waiting.pop()
            if is_done:
                order.append(index)
            elif index not in seen:
                seen.add(index)
                waiting.append((index, True))
                waiting += [(other, False) for other in sorted(self.effects.get(index, ())) if other in members]
        return order[::-1]

    def _add(self, index: int, children: Mapping[int, list[int]], nodes: list[Node]) -> None:
        for other in children.get(index, ()):
            nodes.append(Node(self.bundles[other], self.bundles[index], self.effects[index][other]))
            self._add(other, children, nodes)
