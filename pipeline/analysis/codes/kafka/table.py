"""The table of Kafka's error codes, put together from its parts."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.codes.kafka.admin import ROWS as ADMIN
from pipeline.analysis.codes.kafka.cluster import ROWS as CLUSTER
from pipeline.analysis.codes.kafka.group_protocols import ROWS as GROUP_PROTOCOLS
from pipeline.analysis.codes.kafka.groups import ROWS as GROUPS
from pipeline.analysis.codes.kafka.partitions import ROWS as PARTITIONS
from pipeline.analysis.codes.kafka.producing import ROWS as PRODUCING
from pipeline.analysis.codes.kafka.rows import BROKER_LOG
from pipeline.analysis.codes.kafka.security import ROWS as SECURITY
from pipeline.analysis.codes.kafka.transactions import ROWS as TRANSACTIONS
from pipeline.analysis.codes.model import OPERATOR, REFUSAL, CodeFacts, CodeTable

KAFKA: Final = CodeTable(
    (*CLUSTER, *PARTITIONS, *PRODUCING, *GROUPS, *GROUP_PROTOCOLS, *TRANSACTIONS, *SECURITY, *ADMIN),
    CodeFacts(
        0, "", REFUSAL, OPERATOR, "The code is newer than this table.",
        f"read the error message of the response (`wirelake explain`), and {BROKER_LOG}",
        "look the code up in the documentation of the broker's release.", is_known=False,
    ),
)  # fmt: skip
