"""Loads what the names of ``wirelake`` stand for, and says in a sentence what keeps it from that."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from wirelake.own_packages import demand


def load(module: str, name: str) -> Any:
    """What a module calls by this name. A function says what is missing also when it is called.

    Raises:
        ImportError: an extra is not installed, or another module of the name ``decoder`` or ``pipeline`` is in the way.
    """
    demand()
    with _naming_extras(name):
        found = getattr(importlib.import_module(module), name)
    if not isinstance(found, FunctionType):
        return found

    @functools.wraps(found)
    def called(*arguments: Any, **options: Any) -> Any:
        with _naming_extras(name):
            return found(*arguments, **options)

    return called


@contextmanager
def _naming_extras(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        from pipeline.setup.system import lacking_package  # noqa: PLC0415 - needed seldom

        sentence = lacking_package(error, f"wirelake.{name}")
        if sentence is None:
            raise
        raise ImportError(sentence, name=error.name) from None
