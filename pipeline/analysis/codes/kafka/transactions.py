"""Codes about transactions and the producers that write them."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import KafkaError
from pipeline.analysis.codes.kafka.rows import BROKER_LOG, RETRIES, row
from pipeline.analysis.codes.model import (
    APPLICATION,
    CONFIGURATION,
    LOSS,
    NO_ONE,
    OPERATOR,
    REFUSAL,
    TRANSIENT,
)

_ONE_ID: Final = (
    "use one transactional.id per running instance (Streams and Connect derive it from application.id and task), and a "
    "transaction.timeout.ms longer than a transaction takes."
)
_ABORTED: Final = "what the transaction wrote is aborted: repeat it as a whole if its records are needed."

ROWS: Final = (
    row(
        KafkaError.INVALID_PRODUCER_EPOCH,
        LOSS,
        APPLICATION,
        "The producer's epoch is over: another producer took its transactional id, or its transaction timed out.",
        f"stop the producer if another instance does its work; {_ABORTED}",
        _ONE_ID,
        area="fencing",
    ),
    row(
        KafkaError.PRODUCER_FENCED,
        LOSS,
        APPLICATION,
        "A newer producer has taken the transactional id; this one can write no more.",
        f"stop the older of the two processes that use the transactional id; {_ABORTED}",
        _ONE_ID,
        area="fencing",
    ),
    row(
        KafkaError.INVALID_TXN_STATE,
        REFUSAL,
        APPLICATION,
        "The transaction is not in a state in which this is possible: it was not begun, or is already ending.",
        "abort the transaction and restart the producer.",
        "call beginTransaction, send, and commitTransaction or abortTransaction in this order, from one thread; update "
        "the client library (KIP-890).",
        area="transaction",
    ),
    row(
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        LOSS,
        APPLICATION,
        "The producer id no longer belongs to the transactional id: the coordinator forgot it "
        "(transactional.id.expiration.ms), or gave the id to another producer.",
        f"restart the producer; {_ABORTED}",
        "set transactional.id.expiration.ms (7 days) of the brokers longer than the producer's pauses.",
        area="transaction",
    ),
    row(
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        CONFIGURATION,
        APPLICATION,
        "The producer asks for a longer transaction timeout than transaction.max.timeout.ms of the brokers.",
        "restart the producer with a transaction.timeout.ms up to transaction.max.timeout.ms (900000 by default); it "
        "cannot write until then.",
        "set transaction.timeout.ms of the client (Flink's sink asks for 3600000) or raise transaction.max.timeout.ms "
        "of the brokers, so that both agree.",
        area="transaction",
    ),
    row(
        KafkaError.CONCURRENT_TRANSACTIONS,
        TRANSIENT,
        NO_ONE,
        "The coordinator still ends the last transaction of this transactional id.",
        RETRIES,
        "if it stays, look at the partitions of __transaction_state and of the transaction: markers cannot be written "
        "to a partition without a leader.",
        area="transaction",
        is_retried=True,
    ),
    row(
        KafkaError.TRANSACTION_COORDINATOR_FENCED,
        TRANSIENT,
        OPERATOR,
        "A coordinator of the past tries to write transaction markers; the new one has taken over.",
        f"nothing while it passes; if it stays, {BROKER_LOG}",
        "restart a broker that continues as coordinator after another one has taken over.",
    ),
    row(
        KafkaError.TRANSACTIONAL_ID_NOT_FOUND,
        REFUSAL,
        APPLICATION,
        "The coordinator knows no transactional id of this name.",
        "correct the name: `kafka-transactions.sh --bootstrap-server BROKER list`.",
        "names that were not used for transactional.id.expiration.ms are forgotten.",
    ),
    row(
        KafkaError.TRANSACTION_ABORTABLE,
        REFUSAL,
        APPLICATION,
        "The broker could not verify the transaction; the producer can abort it and begin a new one (KIP-890).",
        f"abort the transaction; {_ABORTED}",
        "catch TransactionAbortableException (librdkafka: rd_kafka_error_txn_requires_abort) and abort.",
        area="transaction",
    ),
    row(
        KafkaError.OPERATION_NOT_ATTEMPTED,
        REFUSAL,
        APPLICATION,
        "The broker did not try this part of the request because another part of it failed.",
        "look at the other error in the same response.",
        "fix what the other error names.",
    ),
    row(
        KafkaError.INVALID_UPDATE_VERSION,
        REFUSAL,
        OPERATOR,
        "The version of the partition state that a broker changes is not the newest.",
        "nothing: the broker reads the newest state and repeats the change.",
        "if it stays, read the log of the controller.",
    ),
)
