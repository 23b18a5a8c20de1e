"""What do MongoDB's error codes mean? Their names, for replies that tell a number only (write errors, old servers)."""

from __future__ import annotations

CURSOR_NOT_FOUND_CODE = 43
"""What OP_REPLY says by a flag."""

ERROR_NAMES: dict[int, str] = {
    1: "InternalError",
    2: "BadValue",
    6: "HostUnreachable",
    7: "HostNotFound",
    8: "UnknownError",
    9: "FailedToParse",
    11: "UserNotFound",
    13: "Unauthorized",
    14: "TypeMismatch",
    18: "AuthenticationFailed",
    20: "IllegalOperation",
    26: "NamespaceNotFound",
    27: "IndexNotFound",
    CURSOR_NOT_FOUND_CODE: "CursorNotFound",
    48: "NamespaceExists",
    50: "MaxTimeMSExpired",
    59: "CommandNotFound",
    64: "WriteConcernFailed",
    66: "ImmutableField",
    67: "CannotCreateIndex",
    72: "InvalidOptions",
    73: "InvalidNamespace",
    85: "IndexOptionsConflict",
    86: "IndexKeySpecsConflict",
    89: "NetworkTimeout",
    91: "ShutdownInProgress",
    96: "OperationFailed",
    112: "WriteConflict",
    121: "DocumentValidationFailure",
    133: "FailedToSatisfyReadPreference",
    136: "CappedPositionLost",
    189: "PrimarySteppedDown",
    225: "TransactionTooOld",
    246: "SnapshotUnavailable",
    251: "NoSuchTransaction",
    256: "TransactionCommitted",
    262: "ExceededTimeLimit",
    263: "OperationNotSupportedInTransaction",
    10107: "NotWritablePrimary",
    11000: "DuplicateKey",
    11600: "InterruptedAtShutdown",
    11601: "Interrupted",
    11602: "InterruptedDueToReplStateChange",
    13388: "StaleConfig",
    13435: "NotPrimaryNoSecondaryOk",
    13436: "NotPrimaryOrSecondary",
}
"""Codes that drivers act upon (mongodb/specifications), and those that applications meet."""


def error_name(code: int | None) -> str | None:
    """A code's name; None if it is not known."""
    return None if code is None else ERROR_NAMES.get(code)
