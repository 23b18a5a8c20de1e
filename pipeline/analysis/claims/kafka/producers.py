"""Claims about producers and transactions."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_TRANSACTION = ("transaction",)
_OF_PRODUCER = ("client", "transaction")
_TOPIC = ("topic",)
_OF_CLIENT = ("topic", "client")
_BEGIN = ("AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit")
_REFUSALS = seen("the broker's error", "Produce", names=_OF_CLIENT, where=REFUSED, half="response")

HANGING_TRANSACTION = (
    Claim(
        r"is open for|was open for|keeps transaction|kept transaction|left transaction|the transaction began",
        "A transaction is open, and since when.",
        (seen("its first request", *_BEGIN, names=_TRANSACTION, half="request"),),
    ),
    Claim(
        r"othing (?:of it )?was seen|is open for",
        "Nothing was seen of it since; it was not ended.",
        (silent("no EndTxn, and nothing else, on its producer's connections", names=_OF_PRODUCER),),
    ),
    Claim(
        r"others there were committed after",
        "Other transactions on the partition take less time.",
        (seen("their ends, in EndTxn, WriteTxnMarkers or responses to readers", "EndTxn", "WriteTxnMarkers", "Fetch"),),
    ),
    Claim(
        r"started over as|came back as",
        "The producer came back under another transactional id.",
        (seen("InitProducerId of the other id", "InitProducerId", names=("client",)),),
    ),
    Claim(
        r"coordinator aborted it",
        "The coordinator aborted it after its timeout.",
        (
            seen("the timeout of InitProducerId", "InitProducerId", names=_TRANSACTION, half="request"),
            seen("its end, in WriteTxnMarkers or a response to a reader", "WriteTxnMarkers", "Fetch", names=_TOPIC),
            silent("no EndTxn on its producer's connections", names=_OF_PRODUCER),
        ),
    ),
    Claim(
        r"get[s]? nothing beyond it|got nothing beyond it",
        "Readers of committed records wait for it.",
        (seen("fetches that stop at the last stable offset", "Fetch", names=_TOPIC, half="response"),),
    ),
)  # fmt: skip

LSO_STALLED = (
    Claim(
        r"last stable offset of .* was at",
        "The last stable offset does not move while the log grows.",
        (seen("Fetch or ListOffsets responses that state both", "Fetch", "ListOffsets", names=_TOPIC, half="response",
              least=2),),
    ),
    Claim(
        r"\(transactional id [^)]*\) has held its transaction open",
        "Whose transaction it is.",
        (seen("the request that states its producer id, or its batches", "InitProducerId", *_BEGIN,
              names=_TRANSACTION),),
    ),
    Claim(
        r"has held its transaction open",
        "A transaction is open.",
        (seen("fetches that stop at it, or its batches", "Fetch", "ListOffsets", "Produce", names=_TOPIC),),
    ),
)  # fmt: skip

READ_COMMITTED_STARVED = (
    Claim(
        r"reads only what is committed",
        "A reader of committed records gets no records.",
        (seen("its fetches at the last stable offset", "Fetch", names=_OF_CLIENT, least=2),),
    ),
    Claim(
        r"behind which a transaction of (?!an unknown|a producer)",
        "Whose transaction holds it back.",
        (seen("its batches, in Produce requests or Fetch responses", *_BEGIN, "Fetch", names=_TOPIC),),
    ),
    Claim(r"(offsets?|transaction markers?\)) waits?", "How much waits.",
          (seen("the log's end in Fetch responses", "Fetch", names=_TOPIC, half="response"),)),
)  # fmt: skip

FENCED_PRODUCER = (
    Claim(
        r"was fenced off|aborted transaction",
        "A producer was fenced off its transactional id, or its transaction was aborted.",
        (seen("the broker's error", names=("client",), where=REFUSED, half="response"),),
    ),
    Claim(
        r"has taken the id over|by turns|take transactional id|from each other",
        "Who took the id over.",
        (seen("InitProducerId of the other client", "InitProducerId", names=_TRANSACTION, half="request"),),
    ),
    Claim(
        r"not refused again",
        "The producer was not refused again.",
        (silent("no further error on its connections", names=("client",)),),
    ),
)  # fmt: skip

SEQUENCE_GAP = (
    Claim(r"out of sequence|started over on", "A producer writes out of sequence.", (_REFUSALS,)),
)  # fmt: skip

PRODUCE_REFUSED = (
    Claim(
        r"refused records",
        "Brokers refused records.",
        (_REFUSALS,),
    ),
    Claim(
        r"not written by any later attempt|not written",
        "The records were not written by a later attempt.",
        (silent("no accepted repetition on the producer's connections", "Produce", names=("client",)),),
    ),
)  # fmt: skip

DUPLICATE_WRITE = (
    Claim(
        r"twice",
        "Records are in the log twice.",
        (seen("the first request, and its repetition", "Produce", names=_OF_CLIENT, half="request", least=2),),
    ),
    Claim(
        r"appended both|Offsets by partition",
        "The broker appended both, and where.",
        (seen("responses or fetches that state both offsets", "Produce", "Fetch", names=_TOPIC, half="response"),),
    ),
    Claim(
        r"it got no answer",
        "The first request was not answered in time.",
        (silent("no response on the producer's connection", "Produce", names=_OF_CLIENT, half="response"),),
    ),
    Claim(r"without idempotence", "The producer writes without idempotence.",
          (seen("batches without a producer id", "Produce", names=_OF_CLIENT, half="request"),)),
)  # fmt: skip

CRC_MISMATCH = (
    Claim(
        r"[Cc]hecksum",
        "A batch's checksum does not match its content.",
        (seen("the batch", "Produce", "Fetch", names=_TOPIC),),
    ),
)  # fmt: skip

OVERSIZED_OR_TINY_BATCHES = (
    Claim(
        r"larger than (?:it allows|max)|The broker refused them",
        "A topic does not take batches of this size.",
        (_REFUSALS,),
    ),
    Claim(
        r"records a batch|batches of about one record",
        "A producer writes batches of about one record.",
        (seen("its batches", "Produce", names=_OF_CLIENT, half="request", least=2),),
    ),
)  # fmt: skip

ACKS0_PRODUCER = (
    Claim(
        r"acks=0",
        "A producer writes without asking for an answer.",
        (seen("requests with acks=0", "Produce", names=("client",), half="request",
              where="json_extract_string(request_body, '$.acks') = '0'"),),
    ),
)  # fmt: skip

OLD_MESSAGE_FORMAT = (
    Claim(
        r"carries messages of format|holds old message formats|by requests that cannot take",
        "A topic carries old message formats.",
        (seen("batches of these formats, or requests that take no others", "Produce", "Fetch", names=_TOPIC),),
    ),
    Claim(
        r"(?<!who )\bwritten (?:to \S+ )?by",
        "Who writes them.",
        (seen("batches of these formats in Produce requests", "Produce", names=_TOPIC, half="request"),),
    ),
    Claim(
        r"read by",
        "Who reads them.",
        (seen("fetches of the topic", "Fetch", names=_TOPIC),),
    ),
    Claim(r"They have no idempotence", "What these formats lack.", ()),
)  # fmt: skip
