"""Messages that a fault of ours keeps from being shown: each costs itself alone, is named, and the exit code is 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.analysis.safety.guard import InternalError

_MOST = 1000
"""Failures that are kept: a fault may show in each of a million messages."""


class Failures:
    """Failures of single messages, in order.

    Attributes:
        errors: the first of them; nothing of a message's content.
    """

    def __init__(self) -> None:
        self.errors: list[InternalError] = []

    @contextmanager
    def of(self, number: int, exchange_id: str | None) -> Iterator[None]:
        """Contain what is raised within the block, which works on the message of this number."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            self.add(error, number, exchange_id)

    def add(self, error: Exception, number: int, exchange_id: str | None) -> None:
        """Note a failure; raise it if a file, a pipe or memory failed and not a step of ours."""
        failure = failure_of(error, number, exchange_id)
        if failure is None:
            raise error
        if len(self.errors) < _MOST:
            self.errors.append(failure)


def failure_of(error: Exception, number: int, exchange_id: str | None) -> InternalError | None:
    """What failed on a message; None: it is no fault of ours."""
    from pipeline.analysis.safety.guard import InternalError, is_infrastructure  # noqa: PLC0415 - loads DuckDB, Arrow

    if isinstance(error, MemoryError) or is_infrastructure(error):
        return None
    return InternalError.of(error, f"message {number}", exchange_id or "")


@contextmanager
def one_message(number: int, exchange_id: str | None) -> Iterator[None]:
    """Around work on one message that was asked for.

    Raises:
        UserError: a fault of ours; it names the class of the exception and the line, nothing of the message.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        failure = failure_of(error, number, exchange_id)
        if failure is None:
            raise
        raise UserError(f"{failure}. Please report this: it is a fault of Wirelake") from error
