"""Protocols that clients or servers speak by mistake: their names, and what to do about it."""

from __future__ import annotations

HTTP, TLS = "HTTP", "TLS"


def remedy(asks: str, answers: str) -> str:
    """Why a server may answer in another protocol than it is asked in.

    Args:
        asks, answers: names of protocols.
    """
    if answers == TLS:
        setting = {"Kafka": " (security.protocol=SSL or SASL_SSL)", "MongoDB": " (tls=true)"}.get(asks, "")
        return f"the server expects TLS, the client does not use it{setting}"
    if asks == TLS:
        return "this port does not speak TLS, or it is the wrong port"
    if answers == HTTP:
        return "wrong port, or the proxy must be in TCP mode"
    return "wrong port"
