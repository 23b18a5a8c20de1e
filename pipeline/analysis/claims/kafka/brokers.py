"""Claims about brokers, topics, and the clients that ask them."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import ACCEPTED, REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_SERVER = ("server",)
_CLIENT = ("client",)
_TOPIC = ("topic",)
_BROKER_SILENT = silent("no response on any connection to the broker", names=_SERVER, half="response")
_SERVED_AGAIN = "accepted requests afterwards"
_KAFKA = "protocol = 'kafka'"

PARTITION_UNAVAILABLE = (
    Claim(
        r"had no leaders?|has no leaders?|have no leaders?",
        "Partitions had no leader.",
        (seen("the brokers' errors", names=_TOPIC, where=f"{_KAFKA} AND {REFUSED}", half="response"),),
    ),
    Claim(r"answered nothing meanwhile", "A broker answered nothing meanwhile.",
          (_BROKER_SILENT,)),
    Claim(
        r"It was over at",
        "The partitions were served again.",
        (seen(_SERVED_AGAIN, "Produce", "Fetch", "Metadata", names=_TOPIC, where=ACCEPTED, half="response"),),
    ),
)  # fmt: skip

COORDINATOR_UNAVAILABLE = (
    Claim(
        r"had no coordinator|has no coordinator|have no coordinator|which does not coordinate .* was asked",
        "Groups or transactions had no coordinator.",
        (seen("the brokers' errors", where=f"{_KAFKA} AND {REFUSED}", half="response"),),
    ),
    Claim(
        r"refused some requests, and accepted others",
        "A coordinator refuses a client and accepts other requests of its group.",
        (
            seen("the coordinator's errors", names=("group", "client"), where=REFUSED, half="response", least=5),
            seen("accepted requests of the group", names=("group",), where=ACCEPTED, half="response"),
        ),
    ),
    Claim(
        r"No success was seen since",
        "No such request was accepted afterwards.",
        (silent("no such request of the client that is accepted", names=_CLIENT, half="response"),),
    ),
    Claim(r"answered nothing meanwhile", "A broker answered nothing meanwhile.",
          (_BROKER_SILENT,)),
    Claim(
        r"sent no FindCoordinator since",
        "A client that asks a broker which is not the coordinator has not looked for it.",
        (silent("no FindCoordinator of the client", "FindCoordinator", names=("client",)),),
    ),
    Claim(
        r"It was over at",
        "The groups were served again.",
        (seen(_SERVED_AGAIN, where=f"{_KAFKA} AND {ACCEPTED}", half="response"),),
    ),
)  # fmt: skip

LATENCY_OUTLIER = (
    Claim(
        r"took up to|answered .* late",
        "A broker answered late.",
        (seen("requests, and their late responses", names=_SERVER, where="status = 'paired' AND latency_us > 0",
              half="response"),),
    ),
    Claim(
        r"waits for replicas",
        "Whether only requests that wait for replicas were slow.",
        (seen("slow Produce responses", "Produce", names=_SERVER, half="response"),),
    ),
)  # fmt: skip

UNANSWERED_REQUESTS = (
    Claim(
        r"without an answer",
        "A broker left requests without an answer.",
        (
            seen("the requests", names=("server", "client"), half="request"),
            silent("no response on their connections", names=("server", "client"), half="response"),
        ),
    ),
    Claim(r"others sent meanwhile were answered", "Other requests were answered meanwhile.",
          (seen("these responses", names=_SERVER, where="status = 'paired'", half="response"),)),
)  # fmt: skip

THROTTLED = (
    Claim(
        r"\bback\b",
        "Brokers delay their answers to a client that exceeds its quota.",
        (seen("throttleTimeMs in responses", names=_CLIENT, half="response",
              where="json_extract(response_body, '$.throttleTimeMs')::BIGINT > 0"),),
    ),
)  # fmt: skip

AUTH_FAILED = (
    Claim(
        r"\brefused\b|\brefuses\b",
        "A broker refused a login or an operation.",
        (seen("the broker's error", names=_CLIENT, where=REFUSED, half="response"),),
    ),
)  # fmt: skip

REQUEST_REFUSED = (
    Claim(
        r"\brefused\b|\brefuses\b",
        "A broker refuses a request each time.",
        (seen("the broker's errors", names=_CLIENT, where=REFUSED, half="response", least=3),),
    ),
    Claim(
        r"\b\w+ means: ",
        "What the code of the error means.",
        (seen("the broker's errors", names=_CLIENT, where=REFUSED, half="response", least=3),),
    ),
    Claim(
        r"cannot begin|could not begin",
        "A group cannot begin because an open transaction holds its offsets.",
        (seen("the broker's errors", "OffsetFetch", where=REFUSED, half="response", least=3),),
    ),
    Claim(
        r"open transactions? \S+ of ",
        "Which transaction holds the group's offsets.",
        (seen("the request that sent the offsets", "AddOffsetsToTxn", "TxnOffsetCommit", names=("group",)),),
    ),
    Claim(
        r"since \S+ UTC it is accepted",
        "Such a request was accepted afterwards.",
        (seen("the accepted request", names=_CLIENT, half="response", where="coalesce(len(error_codes), 0) = 0"),),
    ),
    Claim(
        r"none was accepted since",
        "No such request was accepted afterwards.",
        (silent("no accepted request of the client", names=_CLIENT, half="response"),),
    ),
)  # fmt: skip

UNSUPPORTED_VERSION = (
    Claim(
        r"did not take|does not take|A broker refuses",
        "A broker does not take a version of a request.",
        (seen("the broker's error, or a request after which the broker closed the connection", names=_CLIENT),),
    ),
)  # fmt: skip

KIP896_INCOMPATIBLE_CLIENT = (
    Claim(
        r"no longer answers|too old for",
        "A client uses versions that Kafka 4 dropped.",
        (seen("requests of these versions", names=_CLIENT, half="request"),),
    ),
)  # fmt: skip

UNKNOWN_TOPIC_LOOP = (
    Claim(
        r"did not have|has none of this name",
        "A client asks for a topic that the cluster does not have.",
        (seen("the broker's error", names=_TOPIC, where=REFUSED, half="response"),),
    ),
)  # fmt: skip

STALE_METADATA = (
    Claim(
        r"agree on the leader",
        "A client and a broker do not agree on a leader.",
        (seen("the broker's error", names=_TOPIC, where=REFUSED, half="response"),),
    ),
)  # fmt: skip

FENCED_LEADER_EPOCH = (
    Claim(
        r"leader epoch of the past|outdated leader epoch",
        "A client asks by an old leader epoch.",
        (seen("the broker's error", names=_TOPIC, where=REFUSED, half="response"),),
    ),
)  # fmt: skip

FETCH_SESSION_CHURN = (
    Claim(
        r"new fetch session|fetch session without success",
        "A client begins fetch sessions repeatedly.",
        (seen("its fetches with session id and epoch", "Fetch", names=_CLIENT, half="request", least=2),),
    ),
)  # fmt: skip

TOPIC_RECREATED = (
    Claim(
        r"another one since|deleted and created again|offsets start over|another id",
        "A topic was deleted and created again.",
        (seen("responses that state its old and its new id", "Metadata", "CreateTopics", "DescribeTopicPartitions",
              names=_TOPIC, half="response", least=2),),
    ),
    Claim(
        r"\), by ",
        "Who created it again.",
        (seen("the request", "CreateTopics", "DeleteTopics", "Metadata", half="request"),),
    ),
)  # fmt: skip

CONNECTION_CHURN = (
    Claim(
        r"opened .* connections|connected \d+ times",
        "A client opens many connections.",
        (seen("their handshakes", names=_CLIENT, least=3),),
    ),
    Claim(
        r"closed .* connections? to .* while the answer to .* was coming",
        "A client closes its connections while answers come.",
        (seen("the answers that it broke off", names=_CLIENT, half="response"),),
    ),
    Claim(
        r"closed .* connections? to .* without an answer to .* its request timeout is shorter",
        "A client gives up before the wait that it asked for is over.",
        (seen("requests that it gave up", "Fetch", "ShareFetch", names=_CLIENT, half="request", least=3),),
    ),
    Claim(
        r"asked for nothing but the handshake",
        "The client asks for nothing.",
        (silent("no other request on these connections", names=_CLIENT),),
    ),
)  # fmt: skip
