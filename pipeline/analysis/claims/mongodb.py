"""Claims about MongoDB, and the evidence that each rests on."""

from __future__ import annotations

from pipeline.analysis.claims.model import Claim, Ground, Half, seen, silent

_CLIENT = ("client",)
_HELLO = "command IN ('hello', 'isMaster', 'ismaster')"


def _mongo(words: str, where: str = "", half: Half = "exchange", least: int = 1) -> Ground:
    return seen(words, names=_CLIENT, half=half, least=least,
                where=f"protocol = 'mongodb'{' AND ' if where else ''}{where}")  # fmt: skip


MONGO_COMMAND_FAILED = (
    Claim(
        r"failed|fails|asks .* for cursors|(refuses|refused) the login",
        "A command fails, and with which code.",
        (_mongo("the server's reply with its error", "len(error_codes) > 0", "response"),),
    ),
    Claim(
        r"is too old for the driver",
        "A driver does not accept a server.",
        (
            _mongo("the client's handshake, which names the driver", _HELLO),
            _mongo("the reply with the server's wire versions", _HELLO, "response"),
        ),
    ),
    Claim(
        r"and sent no command",
        "A driver asks a server nothing but hello.",
        (
            _mongo("the client's hello", _HELLO),
            silent("no other command on the client's connections to the server", names=_CLIENT,
                   where="protocol = 'mongodb'"),
        ),
    ),
)  # fmt: skip

MONGO_RETRY_STORM = (
    Claim(
        r"had to repeat|repeats",
        "A client repeats commands.",
        (_mongo("the repeated commands, or errors that ask for it", least=2),),
    ),
)  # fmt: skip

MONGO_SLOW_COMMAND = (
    Claim(
        r"took up to|takes up to",
        "A server takes long for a command.",
        (_mongo("the command and its late reply", "status = 'paired' AND latency_us > 0", "response"),),
    ),
)  # fmt: skip

MONGO_CURSOR_LEAK = (
    Claim(
        r"cursors? open|open at",
        "A client leaves cursors open.",
        (
            _mongo("the replies that opened them", "command IN ('find', 'aggregate', 'listIndexes')", "response"),
            silent("no getMore to the end and no killCursors on the client's connections", names=_CLIENT,
                   where="protocol = 'mongodb'"),
        ),
    ),
)  # fmt: skip

CHANGE_STREAM_LOST = (
    Claim(
        r"was lost at",
        "A change stream was lost.",
        (_mongo("the server's error", "len(error_codes) > 0", "response"),),
    ),
    Claim(
        r"Its last read was at",
        "When the client had read last.",
        (_mongo("a reply to getMore or aggregate", "command IN ('getMore', 'aggregate')", "response"),),
    ),
    Claim(
        r"It opened a new stream",
        "The client began a new stream.",
        (_mongo("an accepted aggregate", "command = 'aggregate' AND len(error_codes) = 0", "response"),),
    ),
    Claim(
        r"No new stream was seen",
        "The client was not seen to open a new stream.",
        (silent("no accepted aggregate on the client's connections", names=_CLIENT, where="protocol = 'mongodb'"),),
    ),
)  # fmt: skip
