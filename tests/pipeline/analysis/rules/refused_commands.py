"""Each command of MongoDB, refused each time with each code: traffic in which no pair may go unreported.

``python -m tests.pipeline.analysis.rules.refused_commands [SECONDS]`` prints the matrix, of commands so far apart: a
line for each command and code, and which rules report it, or why none does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from decoder.mongodb.error_names import ERROR_NAMES
from pipeline.analysis.codes.model import HEALTH
from pipeline.analysis.codes.mongodb.table import MONGODB
from pipeline.analysis.rules.mongodb.commands import ORDINARY
from pipeline.analysis.rules.rule import all_rules
from tests.decoder.mongodb.build import command, reply
from tests.hostile.traffic import START_US, Landing
from tests.pipeline.analysis.rules.kafka.refused_everywhere import STEP_S, TIMES, judged, reported

_OF_COLLECTIONS = (
    *("find", "aggregate", "insert", "update", "delete", "findAndModify", "count", "distinct"),
    *("createIndexes", "dropIndexes", "listIndexes", "create", "drop", "collMod", "collStats"),
)
_OF_SERVERS = (
    *("hello", "ping", "saslStart", "saslContinue", "authenticate", "commitTransaction", "abortTransaction"),
    *("listCollections", "listDatabases", "dropDatabase", "renameCollection", "serverStatus", "replSetGetStatus"),
)
COMMANDS = (*_OF_COLLECTIONS, "getMore", "killCursors", *_OF_SERVERS)
"""What applications, drivers and exporters send."""
WRITES = ("insert", "update", "delete")
"""Their replies may state errors of single writes, and of the write concern, too."""
_DRIVER = {"driver": {"name": "PyMongo", "version": "4.8"}}


@dataclass(frozen=True, slots=True)
class Pair:
    """A command and the code that each of them is answered with; ``within``: where in the reply it is."""

    command: str
    code: int
    within: str = ""

    @property
    def client(self) -> str:
        """The application that sends these commands, and no others."""
        return f"client-{self.command}-{self.code}-{self.within}."

    @property
    def name(self) -> str:
        """For people."""
        inside = f" in {self.within}" if self.within else ""
        return f"{self.command} {MONGODB.meaning(self.command, self.code).name}{inside}"

    @property
    def is_health(self) -> bool:
        """Whether it is a part of normal operation, or tells an application whether something is there already."""
        facts = MONGODB.meaning(self.command, self.code)
        return self.code in ORDINARY or (facts.kind == HEALTH and facts.api is not None)

    def asked(self) -> dict[str, Any]:
        """The command."""
        collection = f"c{self.code}{self.within}"
        if self.command in _OF_COLLECTIONS:
            return {self.command: collection, "$db": "shop"}
        if self.command == "getMore":
            return {"getMore": 1000 + self.code, "collection": collection, "$db": "shop"}
        if self.command == "killCursors":
            return {"killCursors": collection, "cursors": [1000 + self.code], "$db": "shop"}
        return {self.command: 1, "$db": f"d{self.code}"}

    def answer(self) -> dict[str, Any]:
        """The reply."""
        error = {"code": self.code, "codeName": ERROR_NAMES[self.code], "errmsg": "refused"}
        if self.within == "writeErrors":
            return {"ok": 1.0, "n": 0, "writeErrors": [{"index": 0, **error}]}
        if self.within == "writeConcernError":
            return {"ok": 1.0, "n": 1, "writeConcernError": error}
        return {"ok": 0.0, **error}


def pairs(commands: Iterable[str] = COMMANDS) -> Iterator[Pair]:
    """All pairs."""
    for one in commands:
        places = ("", "writeErrors", "writeConcernError") if one in WRITES else ("",)
        yield from (Pair(one, code, within) for within in places for code in sorted(ERROR_NAMES))


def landed(some: Iterable[Pair], step_s: int = STEP_S) -> Landing:
    """Each application says who it is, sends commands this many seconds apart, and gets the same code each time."""
    landing = Landing()
    for number, pair in enumerate(some):
        first, us = number * (TIMES + 1), START_US + number
        hello = {"hello": 1, "$db": "admin", "client": {"application": {"name": pair.client}, **_DRIVER}}
        _say(landing, first, number, us, hello, {"ok": 1.0, "maxWireVersion": 21})
        for turn in range(1, TIMES + 1):
            _say(landing, first + turn, number, us + turn * step_s * 1_000_000, pair.asked(), pair.answer())
    return landing


def _say(landing: Landing, number: int, connection: int, us: int, asked: dict[str, Any], got: dict[str, Any]) -> None:
    ids, more = number + 1, {"protocol": "mongodb", "api": (2013, 0)}
    landing.add(number, "request", command(asked, request_id=ids), us, connection, ids=(ids, None), **more)
    landing.add(number, "response", reply(got, response_to=ids), us + 500, connection, ids=(ids, ids), **more)


def silent(commands: Iterable[str], step_s: int = STEP_S) -> list[str]:
    """Pairs that no rule reports above info, although they are no part of normal operation."""
    some = list(pairs(commands))
    rules = reported(judged(landed(some, step_s)))
    return [pair.name for pair in some if pair.client not in rules and not pair.is_health]


def main(step_s: int = STEP_S) -> int:
    """Print the matrix; 1 if a pair is silent that is not declared health."""
    known = {rule.name for rule in all_rules()}
    lost = count = 0
    for one in COMMANDS:
        some = list(pairs([one]))
        rules = reported(judged(landed(some, step_s)))
        for pair in some:
            found = sorted(rules.get(pair.client, set()) & known)
            lost += not found and not pair.is_health
            print(pair.name, ", ".join(found) or ("health" if pair.is_health else "SILENT"))
        count += len(some)
    print(f"{count} pairs, {lost} silent")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
