"""Codes about primaries, members of replica sets, their network and write concerns."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.codes.model import (
    APPLICATION,
    CLIENT,
    CONFIGURATION,
    HEALTH,
    LOSS,
    NOBODY,
    OPERATOR,
    REFUSAL,
    TRANSIENT,
)
from pipeline.analysis.codes.mongodb.rows import DRIVER_RETRIES, MESSAGE, SERVER_LOG, family, row

_PRIMARY_FIX: Final = (
    "set retryWrites=true, use a connection string that names the replica set (replicaSet=NAME) instead of one "
    "member, and "
    "`rs.status()` for an election that does not end."
)
_MEMBERS: Final = "see which members are up: `rs.status()`."

ROWS: Final = (
    *family(
        TRANSIENT,
        CLIENT,
        f"{DRIVER_RETRIES[:-1]}. If it stays, the client writes to a member that is not primary: look at its "
        "connection string (directConnection).",
        _PRIMARY_FIX,
        {
            10107: "The server that was asked is not the primary, so that it takes no writes.",
            13435: "The server is a secondary, and the command does not allow reading from one.",
        },
        area="primary",
        is_retried=True,
    ),
    row(
        10058,
        TRANSIENT,
        CLIENT,
        "The server is not the primary (an old form of NotWritablePrimary).",
        "look at the connection string of the client (directConnection): it writes to a member that is not primary.",
        _PRIMARY_FIX,
        area="primary",
    ),
    *family(
        TRANSIENT,
        CLIENT,
        DRIVER_RETRIES,
        _PRIMARY_FIX,
        {
            189: "The primary stepped down while it worked on the command.",
            11602: "A change of primary interrupted the command.",
            13436: "The server is neither primary nor secondary: it starts, recovers or rolls back.",
            11600: "The server shuts down and interrupted the command.",
            91: "The server shuts down.",
        },
        area="primary",
        is_retried=True,
    ),
    *family(
        TRANSIENT,
        OPERATOR,
        "nothing if it is rare: the driver repeats the operation once. If it stays, look at the network between the "
        "servers.",
        "use names that resolve and open the ports between all members and mongos.",
        {
            6: "The server could not reach another server.",
            7: "The name of another server cannot be resolved.",
            89: "Another server did not answer in time.",
            9001: "A connection was cut while the command ran.",
        },
        area="network",
        is_retried=True,
    ),
    *family(
        TRANSIENT,
        OPERATOR,
        _MEMBERS,
        "use names that resolve and open the ports between all servers.",
        {
            202: "Another server did not answer in time.",
            145: "The server dropped its pooled connections to another one.",
            230: "A host name cannot be resolved.",
            231: "The answer of a name server is not valid.",
            240: "A DNS record has another type than expected.",
            199: "The server no longer watches this replica set.",
            407: "A connection to another server was not free in time.",
            450: "Too many operations wait for a connection to another server.",
        },
        area="network",
    ),
    row(
        133,
        TRANSIENT,
        OPERATOR,
        "No member fits the read preference: no primary, or no secondary with these tags.",
        _MEMBERS,
        "use a read preference that some member always meets (primaryPreferred, secondaryPreferred).",
    ),
    row(
        134,
        TRANSIENT,
        NOBODY,
        "The member has no snapshot yet that a majority has, as just after its start.",
        "nothing while it passes: the driver repeats the read.",
        "if it stays, look for members that do not replicate: `rs.status()`.",
        is_retried=True,
    ),
    row(
        148,
        CONFIGURATION,
        OPERATOR,
        "The server does not offer read concern majority (enableMajorityReadConcern is off).",
        "read with another read concern.",
        "remove enableMajorityReadConcern=false.",
    ),
    row(
        64,
        TRANSIENT,
        OPERATOR,
        "The write is on the primary, but the write concern was not met within wtimeout: members lag or are down.",
        "see which members lag: `rs.status()`, `rs.printSecondaryReplicationInfo()`. The write was not undone.",
        "run enough members that keep up for w, and a wtimeout that outlasts a restart.",
        area="write concern",
    ),
    row(
        100,
        CONFIGURATION,
        OPERATOR,
        "The write concern asks for more members, or for a tag, than the replica set has.",
        "ask for w=majority, or add members.",
        "set w up to the number of members that hold data, or name a tag that is configured.",
        area="write concern",
    ),
    row(
        79,
        CONFIGURATION,
        APPLICATION,
        "The write concern has a name that the replica set does not know.",
        "use w=majority or a number.",
        "define other names in settings.getLastErrorModes of the replica set.",
        area="write concern",
    ),
    *family(
        REFUSAL,
        APPLICATION,
        f"{MESSAGE}.",
        "use a write concern and read concern that this command and this server take.",
        {
            75: "The write concern of an old form is met only in part.",
            187: "A linearizable read could not be confirmed by the primary.",
            160: "The value of maxStalenessSeconds is outside the allowed range.",
        },
        area="write concern",
    ),
    *family(
        CONFIGURATION,
        OPERATOR,
        "look at the server's configuration: `rs.conf()`, `rs.status()`.",
        "start mongod with --replSet, and initiate the set once (`rs.initiate()`).",
        {
            123: "The server is no member of a replica set.",
            76: "The server does not replicate.",
            94: "The replica set has not been initiated, or the server is not ready.",
            23: "The replica set has been initiated already.",
            71: "There is no replica set of this name.",
            74: "There is no such member.",
            93: "The configuration of the replica set is not valid.",
            103: "The new configuration does not fit the old one.",
            108: "The name of the replica set differs between the members.",
            110: "The member has data already, so that it cannot join as a new one.",
            104: "The member may not become primary.",
            95: "The server is not a secondary.",
            124: "The member uses another election protocol.",
            188: "The server is of another release than the others.",
            303: "The addresses that the server gives clients have changed (horizons).",
        },
    ),
    *family(
        TRANSIENT,
        OPERATOR,
        _MEMBERS,
        "if it stays, read the log of the primary.",
        {
            109: "A change of the configuration is under way.",
            216: "An election is under way.",
            135: "The member goes by a term that is over.",
            92: "The secondary is ahead of the primary, as after a failover.",
            308: "The current configuration is not committed yet.",
            164: "The member still copies its data.",
            113: "The first copy of the data failed; the member tries again.",
            119: "The member cannot replicate from this source.",
        },
    ),
    *family(
        LOSS,
        OPERATOR,
        "copy the member's data again (initial sync).",
        "keep an oplog that is longer than the longest halt of a member: `replSetResizeOplog`.",
        {
            138: "The member is so far behind that the oplog of the others no longer reaches back.",
            127: "The member cannot undo what the others do not have.",
            326: "The oplog no longer holds the time that is asked for.",
        },
    ),
    row(
        301,
        LOSS,
        OPERATOR,
        "The server found damaged data.",
        "take the member out, check its disk, and copy its data again (initial sync).",
        "use sound disks, and backups that are tested.",
    ),
    *family(
        HEALTH,
        NOBODY,
        "nothing: whoever asked closed the connection.",
        "if it is frequent, look for clients that give up early (socketTimeoutMS).",
        {279: "The client closed its connection while the command ran."},
    ),
    *family(
        REFUSAL,
        OPERATOR,
        SERVER_LOG,
        "report it if it is a fault of the server; update it.",
        {
            1: "The server failed inside.",
            8: "The server failed, and does not say how.",
            96: "The operation failed; the message says why.",
            125: "The command failed; the message says why.",
            77: "The operation was not finished.",
            82: "The operation makes no progress.",
            235: "This server cannot do it.",
            238: "The server does not have this yet.",
            42: "The server could not write its log.",
        },
        area="server fault",
    ),
)
