"""Claims about the capture itself, which rest on ``bronze.gaps``."""

from __future__ import annotations

from pipeline.analysis.claims.model import Claim, seen, silent

CAPTURE_LOSS = (
    Claim(
        r"lost|holds only|did not look at|dropped|incomplete|Nothing on these|beside a translation|was judged",
        "The capture lost bytes, or holds one direction only.",
        (),
    ),
)  # fmt: skip

CONNECTION_FAILED = (
    Claim(
        r"No process listens at|answers no connection|accepts the connections|TLS handshake|without a word|"
        r"A storm of conn|sends its SYNs to|a SYN flood|: a port scan|A firewall rejects the connections|has no way to|"
        r"receives nothing of .* behind the handshake|Who set that rule|, and .* answers instead, mostly within|"
        r"That one client made both",
        "A connection does not come about, or is ended before anything is asked.",
        (),
    ),
    Claim(
        r"and closes them before it answers anything",
        "A server takes no more connections, or none of some hosts.",
        (silent("no answer on connections of these hosts", names=("server",), half="response"),),
    ),
    Claim(
        r"takes up no connection of",
        "A server's host accepts connections, and its process does not.",
        (
            seen("the first requests of these connections", names=("server",), half="request"),
            silent("no answer to them", names=("server", "client"), half="response"),
        ),
    ),
    Claim(
        r"for its replica set",
        "A driver does not connect to the members that hello names.",
        (seen("the replies that name them", names=("server", "client")),),
    ),
    Claim(
        r"does not read what .* sends",
        "A side of a connection does not read.",
        (seen("the largest message of each connection", names=("server", "client")),),
    ),
    Claim(
        r"never receives the .* up to .* pass",
        "The path carries no packets of full size.",
        (seen("the messages that were never acknowledged, and smaller ones", names=("server", "client")),),
    ),
    Claim(
        r"as soon as it has its credentials",
        "A server refuses a login without an answer.",
        (
            seen("the handshake, answered", names=("server", "client")),
            silent("no answer to the credentials", names=("server",), half="response"),
        ),
    ),
    Claim(
        r"a controller's listener",
        "A client connects to a controller.",
        (
            seen("the answer to ApiVersions, without Metadata", "ApiVersions", names=("server", "client")),
            silent("nothing else of the client there", names=("server", "client")),
        ),
    ),
    Claim(
        r"closes the connection of .* without a SASL handshake",
        "A server wants a login that the client does not offer.",
        (
            seen("requests that are no login", names=("server", "client"), half="request"),
            silent("no answer to any of them", names=("server",), half="response"),
        ),
    ),
    Claim(
        r"gets no answer from .* after each pause|What is between is not on the wire",
        "Something between forgets connections that are idle.",
        (
            seen("the requests after each pause, and an exchange before it", names=("server", "client")),
            silent("no answer to them", names=("server", "client"), half="response"),
        ),
    ),
    Claim(
        r"receives nothing more on|acknowledges nothing of|answers nothing of .* while it answers others",
        "Something between drops the packets of a connection, or the server is away.",
        (
            seen("the requests, and exchanges on other connections meanwhile", names=("server", "client")),
            silent("no answer to them", names=("server", "client"), half="response"),
        ),
    ),
    Claim(
        r"for the brokers again and again",
        "A client does not connect to the servers that Metadata names.",
        (
            seen("the responses that name them", "Metadata", names=("server", "client")),
            silent("nothing of the client but its handshake", names=("client",)),
        ),
    ),
)  # fmt: skip

OTHER_PROTOCOL = (
    Claim(
        r" answers .* requests of ",
        "A server answers in another protocol than it is asked in.",
        (seen("requests to it; the protocol that it speaks is in `bronze.gaps`", names=("server",), half="request"),),
    ),
    Claim(
        r"closed each connection before|closes each connection before|Perhaps it is",
        "A server closes each connection before it answers.",
        (
            seen("requests to it", names=("server",), half="request"),
            silent("no answer on any connection to it", names=("server",), half="response"),
        ),
    ),
)  # fmt: skip
