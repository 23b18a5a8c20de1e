"""Codes about cursors, change streams, sessions, transactions and snapshots."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.codes.model import (
    APPLICATION,
    CLIENT,
    CONFIGURATION,
    HEALTH,
    LOSS,
    NO_ONE,
    OPERATOR,
    REFUSAL,
    TRANSIENT,
)
from pipeline.analysis.codes.mongodb.rows import MESSAGE, family, row

_BEGIN_AGAIN: Final = "nothing if the application repeats the whole transaction; withTransaction() does."
_STORE_IT: Final = (
    "store the token as the driver gives it (the whole document of getResumeToken / resume_token), one for each "
    "stream: a token of another collection, pipeline or cluster does not fit; after an invalidate event use "
    "startAfter."
)

ROWS: Final = (
    row(
        43,
        REFUSAL,
        APPLICATION,
        "The server has no such cursor: it was idle for ten minutes, was closed, or was opened at another server.",
        "repeat the query from its beginning, or from the last document that was read.",
        "read on sooner (a smaller batchSize), and keep a client that goes through a load balancer on one mongos.",
        area="cursor",
    ),
    *family(
        REFUSAL,
        APPLICATION,
        "repeat the query.",
        "read on sooner, and do not drop or change collections that are being read.",
        {
            237: "Somebody closed the cursor (killCursors, killSessions), or its session ended.",
            175: "The plan of the query was stopped: its collection or index was dropped.",
            221: "An index changed while the query ran.",
        },
        area="cursor",
    ),
    row(
        143,
        REFUSAL,
        APPLICATION,
        "Two requests use the same cursor at the same time.",
        "let one thread read a cursor.",
        "use one cursor per worker.",
        area="cursor",
    ),
    row(
        136,
        LOSS,
        APPLICATION,
        "The capped collection has overwritten what the cursor was about to read.",
        "begin at the oldest record that is left, and count what is missing.",
        "enlarge the capped collection (oplog: replSetResizeOplog), or make the reader faster.",
        area="stream lost",
    ),
    row(
        260,
        LOSS,
        APPLICATION,
        "The resume token is not one of this change stream.",
        "begin a stream without resumeAfter and read the collection again for the time between.",
        _STORE_IT,
        area="stream lost",
    ),
    row(
        280,
        LOSS,
        APPLICATION,
        "The change stream cannot continue: its resume point is not found, or a stage removes the resume token.",
        f"{MESSAGE}; begin a stream without resumeAfter and read the collection again for the time between.",
        "keep _id of the events in the pipeline (no $project that drops it), and resume with the same pipeline.",
        area="stream lost",
    ),
    row(
        286,
        LOSS,
        APPLICATION,
        "The oplog no longer reaches back to the last event that the change stream has seen.",
        "read the collection again (a full copy or a comparison since the last event that was processed), and begin a "
        "stream without resumeAfter, or from the time of that copy (startAtOperationTime); to try again with the same "
        "token cannot succeed.",
        "make the history longer than the longest time that the reader is away: `replSetResizeOplog` with "
        "minRetentionHours (storage.oplogMinRetentionHours), and read faster than is written: look at the work on one "
        "event, use maxAwaitTimeMS and batchSize, narrow the pipeline ($match).",
        area="stream lost",
    ),
    *family(
        TRANSIENT,
        CLIENT,
        "nothing: the driver resumes the change stream.",
        "if it stays, read the log of the server.",
        {
            222: "The change stream is closed by the server.",
            234: "The change stream must begin again.",
            346: "The collection or database of the change stream was dropped or renamed.",
            348: "The topology of the cluster changed under the change stream.",
            351: "The change stream begins after an invalidate event.",
        },
    ),
    row(
        376,
        CONFIGURATION,
        OPERATOR,
        "Change streams are not enabled for this tenant.",
        "enable them (setChangeStreamState).",
        "enable change streams before the application that reads them.",
    ),
    row(
        251,
        TRANSIENT,
        APPLICATION,
        "The transaction is not known: it was aborted (as after 60 s, a conflict or a change of primary), or was "
        "never begun here.",
        _BEGIN_AGAIN,
        "keep transactions shorter than transactionLifetimeLimitSeconds (60), and run them by withTransaction().",
        area="transaction",
    ),
    row(
        251,
        HEALTH,
        NO_ONE,
        "The transaction that is to be aborted has ended already.",
        area="transaction",
        api="abortTransaction",
    ),
    row(
        256,
        HEALTH,
        NO_ONE,
        "The transaction is committed already.",
        area="transaction",
    ),
    row(
        225,
        REFUSAL,
        APPLICATION,
        "A newer transaction or write of the same session has begun.",
        "let one thread use a session.",
        "use one session per thread, and never repeat an older write after a newer one.",
        area="transaction",
    ),
    row(
        257,
        REFUSAL,
        APPLICATION,
        "The transaction writes more than it may (16 MB before 4.2).",
        "divide the work into smaller transactions.",
        "write at most 1000 documents per transaction.",
        area="transaction",
    ),
    row(
        388,
        REFUSAL,
        OPERATOR,
        "The transaction does not fit into the storage engine's cache.",
        "divide the work into smaller transactions.",
        "raise wiredTigerCacheSizeGB, or make transactions smaller.",
        area="transaction",
    ),
    row(
        290,
        REFUSAL,
        APPLICATION,
        "The transaction took longer than transactionLifetimeLimitSeconds (60); the server aborted it.",
        f"{_BEGIN_AGAIN[:-1]}, but it takes as long again.",
        "make no remote calls and do not wait for a user within a transaction; do less work in each.",
        area="transaction",
    ),
    row(
        263,
        REFUSAL,
        APPLICATION,
        "The command cannot run within a transaction.",
        "run it before or after the transaction.",
        "create collections and indexes outside of transactions.",
        area="transaction",
    ),
    *family(
        TRANSIENT,
        APPLICATION,
        _BEGIN_AGAIN,
        "use withTransaction(), and keep transactions short.",
        {
            246: "The snapshot that the transaction reads is not available, as after a change of the collection.",
            239: "The snapshot is so old that the server no longer keeps it.",
            250: "The history of the chunks no longer reaches back to the snapshot.",
            272: "A chunk moved while the transaction ran.",
            267: "Another transaction holds this in its prepared state.",
            281: "The coordinator of the transaction stepped down.",
            282: "The coordinator of the transaction decided to abort it.",
            356: "The transaction was repeated since.",
            363: "The same transaction is still running.",
            358: "The server cannot run this transaction by itself.",
        },
        area="transaction",
    ),
    row(
        217,
        REFUSAL,
        CLIENT,
        "The server no longer knows whether the write that is repeated was made.",
        "look whether the write is there before it is made again.",
        "keep an oplog that is longer than the longest halt.",
        area="transaction",
    ),
    *family(
        REFUSAL,
        APPLICATION,
        "close sessions that are no longer used.",
        "close sessions where they are opened (`with client.start_session()`, try-with-resources).",
        {
            206: "The session is not known, or belongs to another user.",
            213: "The session exists already.",
            261: "The server keeps as many sessions as it may (maxSessions).",
            228: "The transfer of the session was not finished.",
            173: "The server no longer has this connection.",
        },
    ),
    *family(
        CONFIGURATION,
        OPERATOR,
        "compare the clocks of the servers, and the keys of the members.",
        "run NTP on all servers, and use one keyFile for all members.",
        {
            106: "The clocks of the servers differ too much.",
            204: "The signature of the cluster time does not fit.",
            205: "The cluster time of the client is too far ahead.",
            209: "The cluster time is too old.",
            210: "The server cannot sign the cluster time.",
            211: "The key that signed the cluster time is not known.",
        },
    ),
)
