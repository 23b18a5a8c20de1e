"""Names of configuration properties as client libraries have them, by the software that the wire names (KIP-511)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.analysis.tables import Tables

SESSION: Final = "session.timeout.ms"
_OTHER_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "sarama": {SESSION: "Consumer.Group.Session.Timeout"},
    "kgo": {SESSION: "kgo.SessionTimeout"},
    "kafka-python": {SESSION: "session_timeout_ms"},
    "aiokafka": {SESSION: "session_timeout_ms"},
    "kafkajs": {SESSION: "sessionTimeout"},
}
"""By the beginning of the software's name; Java and what is made of librdkafka use the names of Kafka itself."""
_SOFTWARE: Final = r"""
    SELECT lower(arg_max(software_name, ts)) AS name FROM states
    WHERE kind = 'software' AND software_name IS NOT NULL AND client_id IS NOT DISTINCT FROM $client_id
        AND regexp_replace(client, ':\d+$', '') = $host
"""


def property_of(name: str, client_id: str | None, host: str, tables: Tables) -> str:
    """A property as the library of a client has it; as Kafka's documentation names it if the library is not known."""
    (row,) = tables.rows(_SOFTWARE, client_id=client_id, host=host)
    software = row.name or ""
    names = next((names for known, names in _OTHER_NAMES.items() if software.startswith(known)), {})
    return names.get(name, name)
