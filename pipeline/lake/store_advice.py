"""What an object store, or the client of one, refuses, in a line, and what to do about it.

The clients are Arrow's (the agent), delta-rs (readers of a lake) and Hadoop's S3A (the job); each has words of its own.
"""

from __future__ import annotations

import re

_ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("S3AFileSystem not found", "No FileSystem for scheme"),
        "Spark has no connector for this store: for S3 add hadoop-aws of Hadoop's release to the settings, "
        "e.g. spark.jars.packages (docs/cluster.md)",
    ),
    (
        ("InvalidContentType", "wrong version number", "Unsupported or unrecognized SSL message"),
        "the server does not speak https: begin the endpoint with http://, or have it speak https",
    ),
    (
        (
            "InvalidAccessKeyId", "INVALID_ACCESS_KEY", "SignatureDoesNotMatch", "SIGNATURE", "AccessDenied",
            "ACCESS_DENIED", "403 Forbidden", "Status Code: 403", "EXPIRED", "ExpiredToken", "NoAuthWithAWS",
            "credential", "Unauthorized",
        ),
        "check the credentials (for S3 AWS_PROFILE, AWS_ACCESS_KEY_ID or ~/.aws) and their right to list the bucket "
        "and to get and put objects",
    ),
    (
        (
            "NoSuchBucket", "NO_SUCH_BUCKET", "UnknownStoreException", "ucket does not exist", "does not exist",
            "ContainerNotFound",
        ),
        "make the bucket, or correct its name or the endpoint",
    ),
    (
        (
            "NETWORK_CONNECTION", "curlCode", "Connection refused", "ConnectException", "UnknownHost", "dns error",
            "error sending request", "timed out",
        ),
        "check that the endpoint is right, running and reachable from this machine",
    ),
)  # fmt: skip
_MESSAGE = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def advice(error: str) -> str | None:
    """What to do about an error of a store; None: not known."""
    return next((advice for signs, advice in _ADVICE if any(sign in error for sign in signs)), None)


def advised(error: str) -> str:
    """An error of a store in one line, and what to do about it."""
    return f"{_reason(error)}; {advice(error) or 'check the store and its settings'}"


def _reason(error: str) -> str:
    """The store's own message, or the innermost reason of delta-rs' tree, or the first line."""
    if stated := _MESSAGE.search(error):
        return stated[1].strip().rstrip(".")
    lines = lines_of(error)
    if not lines:
        return "it failed without a reason"
    return lines[-1 if "↳" in error else 0].rstrip(".")


def lines_of(error: str) -> list[str]:
    """The lines of what delta-rs says, without the colours and arrows of the tree in which it puts reasons."""
    return [line.strip(" ↳") for line in _COLOURS.sub("", error).splitlines() if line.strip()]
