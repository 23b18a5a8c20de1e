"""The table of MongoDB's error codes, put together from its parts."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.codes.model import APPLICATION, REFUSAL, CodeFacts, CodeTable
from pipeline.analysis.codes.mongodb.access import ROWS as ACCESS
from pipeline.analysis.codes.mongodb.cursors import ROWS as CURSORS
from pipeline.analysis.codes.mongodb.data import ROWS as DATA
from pipeline.analysis.codes.mongodb.limits import ROWS as LIMITS
from pipeline.analysis.codes.mongodb.replication import ROWS as REPLICATION
from pipeline.analysis.codes.mongodb.rows import MESSAGE
from pipeline.analysis.codes.mongodb.schema import ROWS as SCHEMA

_FORMER_NAMES: Final = {
    "NotMaster": 10107,
    "NotMasterNoSlaveOk": 13435,
    "NotMasterOrSecondary": 13436,
    "InterruptedDueToStepDown": 11602,
    "WriteConcernTimeout": 64,
}
"""Other names that servers of some release use."""

MONGODB: Final = CodeTable(
    (*ACCESS, *REPLICATION, *LIMITS, *DATA, *CURSORS, *SCHEMA),
    CodeFacts(
        0, "", REFUSAL, APPLICATION, "The code has no name of its own: the message of the reply states what is wrong.",
        f"{MESSAGE}.", "correct what the message names.", is_known=False,
    ),
    _FORMER_NAMES,
)  # fmt: skip
