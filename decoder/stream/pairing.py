"""What pairers of all protocols keep of a connection: the number of the next exchange, and what was lost."""

from __future__ import annotations

from decoder.model import Direction


class ConnectionPairer:
    """What a pairer of any protocol keeps; see decoder.protocol.Pairer.

    Attributes:
        forgotten: see decoder.protocol.Pairer.
    """

    def __init__(self) -> None:
        self.forgotten = 0
        self._exchanges = 0
        self._expects_requests = False
        self._lost_requests = False
        self._lost_responses = False

    def lost(self, direction: Direction) -> None:
        """See decoder.protocol.Pairer.lost."""
        if direction == "request":
            self._lost_requests = True
        else:
            self._lost_responses = True

    def expect_requests(self) -> None:
        """See decoder.protocol.Pairer.expect_requests."""
        self._expects_requests = True

    @property
    def is_one_sided(self) -> bool:
        """Whether the capture holds nothing of the requests (yet)."""
        return not self._expects_requests

    def _next_ordinal(self) -> int:
        self._exchanges += 1
        return self._exchanges - 1
