"""A driver that polls a server by hello, reads its wire versions, and asks it nothing else; made packet by packet."""

from __future__ import annotations

from typing import Any

from tests.decoder.mongodb.build import command, reply
from tests.pipeline.capture.wire import Flow, Packet

SERVER = ("10.0.0.9", 27017)
EVERY_US = 10_000_000


def polls(
    wire_version: int | None = 6, driver: str = "nodejs", version: str = "7.0.0", *, hellos: int = 6,
    asks: dict[str, Any] | None = None, application: str | None = "shop",
) -> list[Packet]:  # fmt: skip
    """The packets of one monitoring connection.

    Args:
        wire_version: the newest that the server states; None: it states none.
        driver, version: of the client's handshake.
        hellos: how many, ten seconds apart.
        asks: a command behind the first hello.
        application: appName.
    """
    flow = Flow(client=("10.0.0.5", 41_000), server=SERVER).open()
    named = {} if application is None else {"application": {"name": application}}
    client = {"driver": {"name": driver, "version": version}, "os": {"type": "Linux"}, **named}
    stated = {} if wire_version is None else {"minWireVersion": 0, "maxWireVersion": wire_version}
    for number in range(hellos):
        at = flow.ts
        hello = {"ismaster": 1, **({} if number else {"client": client}), "$db": "admin"}
        flow.send(0, command(hello, request_id=number + 1))
        flow.send(1, reply({"ismaster": True, **stated, "ok": 1.0}, number + 1, 100 + number))
        if asks and not number:
            flow.send(0, command(asks, request_id=500))
            flow.send(1, reply({"n": 1, "ok": 1.0}, 500, 600))
        flow.ts = at + EVERY_US
    return flow.packets
