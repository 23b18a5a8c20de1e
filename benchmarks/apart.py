"""A Python library in a process of its own, as Java and tshark are: what others leave in memory does not slow it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from benchmarks.candidates import Candidate


def apart(module: str, readers: str) -> list[Candidate[Any]]:
    """The candidates that a function of a module gives, each in a process of its own.

    Raises:
        ImportError: what the module needs is not installed.
    """
    return [Apart(here.name, here.gives, module, readers, at) for at, here in enumerate(_candidates(module, readers))]


@dataclass
class Apart:
    """A candidate that lives elsewhere; the seconds of a round are its process's CPU time."""

    name: str
    gives: str
    module: str
    readers: str
    index: int
    _process: Executor = field(default_factory=lambda: ProcessPoolExecutor(1, get_context("spawn")), init=False)

    def check(self, items: Sequence[Any]) -> list[bool]:
        return list(self._ask("check", items))

    def load(self, items: Sequence[Any]) -> None:
        self._ask("load", items)

    def round(self, repeat: int) -> float:
        return float(self._ask("round", repeat))

    def _ask(self, method: str, argument: object) -> Any:
        return self._process.submit(_answer, self.module, self.readers, self.index, method, argument).result()


@cache
def _candidates(module: str, readers: str) -> list[Candidate[Any]]:
    """Kept: a candidate remembers what it was given."""
    return list(getattr(import_module(module), readers)())


def _answer(module: str, readers: str, index: int, method: str, argument: object) -> Any:
    return getattr(_candidates(module, readers)[index], method)(argument)
