"""MongoDB's Node driver with compressors: a shop, healthy, and with cursors that are left open."""

from __future__ import annotations

from contextlib import ExitStack

from tests.scenarios.programs import NativeClient, node_program, node_version
from tests.scenarios.rhythm import Clock, Windows
from tests.scenarios.truth import Truth

SECONDS = 600.0
WINDOWS = Windows(80, 200, 330, 440, end=SECONDS)
_LEAKS = {("mongo_cursor_leak", f"leaky-{each}/127.0.0.1") for each in ("snappy", "zlib")}
FINDINGS = {"sick_node_mongodb": _LEAKS}
POSSIBLE = {"sick_node_mongodb": {("mongo_cursor_leak", "?/127.0.0.1")}}
UNKNOWN = {"sick_node_mongodb": {"joined midway": _LEAKS, "with loss": _LEAKS}}
"""The application's name is in the first message of a connection alone, and a lost message may have closed a cursor."""


def build() -> None:
    """Install the program before the scenario's clock runs."""
    node_program("mongodb_app")


def _app(truth: Truth, name: str, server: str, compressors: str, pause_ms: int) -> NativeClient:
    about = ("mongodb", "JavaScript", node_version("mongodb"))
    uri = f"mongodb://{server}/?directConnection=true"
    return NativeClient(
        truth, node_program("mongodb_app"), about, client_id=name, uri=uri, compressors=compressors, pause_ms=pause_ms
    )


def play_well(server: str, truth: Truth, clock: Clock, others: dict[str, str]) -> None:
    """Healthy: MongoDB's Node driver, without compression, with snappy and with zlib: pools, cursors, updates."""
    with ExitStack() as stack:
        for compressor, each in {"": server, **others}.items():
            name = f"shop-{compressor or 'plain'}"
            stack.enter_context(_app(truth, name, each, compressor, 3000))
        clock.until(SECONDS)


def play_sick(server: str, truth: Truth, clock: Clock, others: dict[str, str]) -> None:
    """MongoDB's Node driver with snappy and zlib leaves cursors open."""
    with ExitStack() as stack:
        patients = [
            stack.enter_context(_app(truth, f"leaky-{compressor}", each, compressor, 1000))
            for compressor, each in others.items()
        ]
        stack.enter_context(_app(truth, "archive", server, "", 3000))
        WINDOWS.play(patients, truth, clock)
