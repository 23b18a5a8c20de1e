"""How are Kafka's error codes named (org.apache.kafka.common.protocol.Errors)?"""

from __future__ import annotations

from decoder.kafka.apis import KafkaError

NO_ERROR = int(KafkaError.NONE)

ERROR_NAMES: dict[int, str] = {error.value: error.name for error in KafkaError}


def error_name(code: int) -> str:
    """The name of an error code; a code newer than this table keeps its number, as ``UNKNOWN(code)``."""
    return ERROR_NAMES.get(code, f"UNKNOWN({code})")
