"""What keeps a capture from losing bytes: texts of the rule and of the incident."""

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
