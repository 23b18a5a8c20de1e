"""What keeps a capture from losing bytes? Texts of the rule and of the incident."""

from __future__ import annotations

FILE, INTERFACE, STRANGERS = "file:", "interface:", "strangers:"
"""How the `connection_id` of a loss begins that is of no connection: a landing file, packets that were dropped, and
connections that were not looked at because strangers cost too much."""
NOT_READ = (INTERFACE, STRANGERS)
"""Where a snap length is not to blame."""
MORE_ROOM = (
    "give the capture more room (`--buffer-mib` of `wirelake capture live`; `-B KIB` of tcpdump, in KiB; a quieter "
    "machine; a filter for the broker's port only)"
)
BOTH_WAYS = (
    "capture both directions: no filter on source or destination alone (`tcpdump port 9092`, not `dst port 9092`), on "
    "an interface that requests and responses pass (a mirror port may copy one of them; behind address translation, on "
    "the broker or inside the client's pod)"
)
WHOLE = "capture whole packets (`-s 0` of tcpdump): a snap length cuts each of them off"


def remedy(asks: str, answers: str) -> str:
    """Why a server may answer in another protocol than it is asked in.

    Args:
        asks, answers: names of protocols.
    """
    if answers == "TLS":
        setting = {"Kafka": " (security.protocol=SSL or SASL_SSL)", "MongoDB": " (tls=true)"}.get(asks, "")
        return f"the server expects TLS, the client does not use it{setting}"
    if asks == "TLS":
        return "this port does not speak TLS, or it is the wrong port"
    if answers == "HTTP":
        return "wrong port, or the proxy must be in TCP mode"
    return "wrong port"
