"""The only list of protocols.

Ours, and those of other packages, which name a subclass of :class:`~decoder.protocol.WireProtocol` in the entry point
group ``wirelake.protocols`` of their metadata::

    [project.entry-points."wirelake.protocols"]
    resp = "wirelake_resp:RespProtocol"

Everything else asks for a protocol by its name, which the column ``protocol`` of frames and exchanges holds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points

from decoder.protocol import WireProtocol

GROUP = "wirelake.protocols"
_OURS = ("decoder.kafka.protocol:KafkaProtocol", "decoder.mongodb.protocol:MongoProtocol")
"""The one to be preferred first, where a connection may be either."""


@cache
def protocols() -> Mapping[str, WireProtocol]:
    """All protocols by name.

    Raises:
        RuntimeError: another package's protocol cannot be loaded, or has a name that is taken; the text names it.
    """
    found: dict[str, WireProtocol] = {}
    for place in _OURS:
        module, _, name = place.partition(":")
        protocol = getattr(importlib.import_module(module), name)()
        found[protocol.name] = protocol
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        whose = f"the protocol {entry.name!r} of {entry.value} (entry point group {GROUP})"
        try:
            protocol = entry.load()()
        except Exception as error:
            raise RuntimeError(f"{whose} cannot be loaded: {error}") from error
        if not isinstance(protocol, WireProtocol):
            raise RuntimeError(f"{whose} is no decoder.protocol.WireProtocol")
        if protocol.name in found:
            raise RuntimeError(f"{whose} is called {protocol.name!r}, which is taken")
        found[protocol.name] = protocol
    return found


def protocol_of(name: str) -> WireProtocol:
    """The protocol of this name.

    Raises:
        ValueError: there is none; the text names those that are known.
    """
    found = protocols().get(name)
    if found is None:
        raise ValueError(f"unknown protocol {name!r}; known: {', '.join(protocols())}")
    return found


def names_of(has: Callable[[WireProtocol], bool]) -> list[str]:
    """Names of the protocols for which something holds."""
    return [name for name, protocol in protocols().items() if has(protocol)]
