"""Work in a process of its own: the memory that it takes goes back when it ends, and nothing else waits for it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from pipeline.errors import UserError

T = TypeVar("T")

_NO_MEMORY = "no memory"
_PATIENCE_S = 5.0
"""How long a process that was asked to end has for it, s."""


class Apart:
    """Runs one function at a time in a process of its own."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._is_closed = False

    def run(self, function: Callable[..., T], *arguments: Any, is_quiet: bool) -> T:
        """What a function returns.

        Args:
            function: of a module; it, its arguments and its result go from process to process by pickle.
            arguments: its arguments.
            is_quiet: whether what it prints is thrown away.

        Raises:
            UserError: the function raised it, or its process was killed or closed.
            MemoryError: the function took more memory than there is.
        """
        context = multiprocessing.get_context("spawn")  # threads of DuckDB and Arrow do not survive a fork
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(theirs, function, arguments, is_quiet), daemon=True)
        if self._is_closed:
            raise UserError("closed")
        process.start()
        self._process = process
        theirs.close()
        try:
            answer, problem = ours.recv()
        except EOFError:
            process.join(_PATIENCE_S)
            raise UserError(f"the process that reads ended with {process.exitcode}") from None
        finally:
            ours.close()
            _end(process)
            self._process = None
        if problem is not None:
            raise MemoryError if problem == _NO_MEMORY else UserError(problem)
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the process that runs now, and start no other."""
        self._is_closed = True
        if (process := self._process) is not None and process.is_alive():
            process.terminate()


def _end(process: BaseProcess) -> None:
    process.join(_PATIENCE_S)
    if process.is_alive():
        process.kill()
        process.join()


def _answer(answers: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], is_quiet: bool) -> None:
    """The process: send what the function returns, or an error that says what to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both: who waits for us ends us
    if is_quiet:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    try:
        answers.send((function(*arguments), None))
    except UserError as error:
        answers.send((None, str(error)))  # not the error: some are made of more than their message
    except MemoryError:
        answers.send((None, _NO_MEMORY))
