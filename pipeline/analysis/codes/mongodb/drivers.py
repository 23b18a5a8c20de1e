"""MongoDB drivers: which servers a release accepts, by the newest wire version that these state in hello; their words.

Sources: release notes of the drivers; DRIVERS-2511 (MongoDB 3.6 dropped), DRIVERS-3034 (4.0), DRIVERS-3451 (4.2); the
constant that PyMongo 4.20 has. Wire versions: mongodb/specifications, wireversion-featurelist.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

MONGODB_OF: Final[Mapping[int, str]] = {
    0: "2.4", 2: "2.6", 3: "3.0", 4: "3.2", 5: "3.4", 6: "3.6", 7: "4.0", 8: "4.2", 9: "4.4", 13: "5.0", 17: "6.0",
    21: "7.0", 25: "8.0",
}  # fmt: skip
"""By wire version the release of MongoDB that has it as its newest."""
_LEAST: Final[Mapping[str, Sequence[tuple[tuple[int, int], int]]]] = {
    "pymongo": (((4, 20), 9), ((4, 14), 8), ((4, 11), 7), ((4, 0), 6)),
    "nodejs": (((7, 0), 8), ((6, 10), 7), ((4, 2), 6)),
    "mongo-java-driver": (((5, 5), 8),),
    "mongo-go-driver": (((2, 9), 9), ((2, 4), 8)),
    "mongo-csharp-driver": (((3, 5), 8),),
    "mongoc": (((2, 1), 8),),
}
"""By driver, from which release on it accepts no server below a wire version; the newest release first."""
_CLOSES: Final[Mapping[str, str]] = {
    "pymongo": "`with collection.find(…) as cursor`",
    "nodejs": "`await cursor.close()` in a `finally` block, or `for await`, which closes it",
    "mongo-java-driver": "try-with-resources",
    "mongo-go-driver": "`defer cursor.Close(ctx)`",
    "mongo-csharp-driver": "`using`",
    "mongoc": "`mongoc_cursor_destroy`",
}
CLOSES_IN_ANY: Final = (
    "`with collection.find(…) as cursor` in Python, try-with-resources in Java, `await cursor.close()` in Node"
)
_NUMBERS: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})")


def least_wire_version(driver: str | None, version: str | None) -> int | None:
    """The oldest wire version that a driver accepts of a server; None: it is not known.

    Args:
        driver: as its handshake names it; what is behind ``|`` or ``/`` is what wraps it.
        version: of the driver, likewise.
    """
    releases = _LEAST.get(_own_name(driver), ())
    found = _NUMBERS.match((version or "").strip())
    if found is None:
        return None
    release = (int(found[1]), int(found[2]))
    return next((least for since, least in releases if release >= since), None)


def closes_cursors(driver: str | None) -> str:
    """How an application closes a cursor, in the words of its driver."""
    return _CLOSES.get(_own_name(driver), CLOSES_IN_ANY)


def _own_name(driver: str | None) -> str:
    return re.split(r"[|/]", driver or "")[0].strip().lower()


def mongodb_of(wire_version: int) -> str:
    """The release of MongoDB that speaks up to a wire version, or the one before it."""
    known = max((one for one in MONGODB_OF if one <= wire_version), default=0)
    return MONGODB_OF[known]
