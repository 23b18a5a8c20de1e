"""Functions of the kernel: machine code by numba, kept in a file each and mapped by the next process without numba.

Importing numba and loading what it keeps takes one to two seconds. The file holds the object code of one function with
all that it calls, and a door to it: a C function that takes the arguments as an array of 64-bit words. LLVM places it
in memory in a millisecond. A function without a file is compiled at import, and its file written.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from llvmlite import binding

from decoder.kernel.cache import writable_folder
from decoder.kernel.types import Type, Words

_LOG = logging.getLogger(__name__)
_DOOR = "wirelake_door"
_DIGEST = hashlib.sha256
_DIGEST_BYTES = _DIGEST().digest_size
_Returned = ctypes.c_int64 * 8
_OK = (0, -2)
"""Numba's status of a function that returned: a value, or None."""
_ASKED_OF_NUMBA = ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT")
"""Variables that ask numba for other code than ours."""
_LOCK = Lock()


def compiled(*signature: Type, inline: bool = False, is_entry: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorate a function of the kernel: return type first.

    One that Python calls (``is_entry``) compiles at once unless it was compiled before; another when one that is
    compiled calls it.

    Without its types numba would compile a function again for each constant that it is called with. No function makes
    or keeps an array, so that numba need not count references to those passed (a third of the time otherwise).
    """

    def decorate(function: Callable[..., Any]) -> Kernel:
        made = Kernel(function, signature[0], signature[1:], inline)
        if is_entry:
            made.prepare()
        return made

    return decorate


class Kernel:
    """A function of the kernel, which Python calls and which other kernel functions call.

    Attributes:
        is_new: whether this process compiled it.
    """

    def __init__(self, function: Callable[..., Any], returns: Type, takes: Sequence[Type], inline: bool) -> None:
        self.py_func = function
        self.is_new = False
        self._returns, self._takes, self._inline = returns, takes, inline
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self._put = [kind.put for kind in takes]
        self._is_numbas = _is_numba_asked()
        self._dispatcher: Any = None
        self._engine: Any = None
        self._door: Callable[..., int] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code. Other threads run meanwhile.

        Raises:
            TypeError: too many or too few arguments, or one of another type.
        """
        if self._is_numbas:
            return self.dispatcher(*arguments)
        words: Words = []
        for put, argument in zip(self._put, arguments, strict=True):
            put(words, argument)
        returned = _Returned()
        status = (self._door or self._opened())(returned, struct.pack(f"{len(words)}q", *words))
        if status not in _OK:
            raise RuntimeError(f"{self.__name__} failed with status {status}")
        return self._returns.take(list(returned))

    def prepare(self) -> None:
        """Compile, unless the file is there."""
        if self._is_numbas:
            self.dispatcher  # noqa: B018 - compiled now, not at the first call
        elif not self._file.exists():
            self._make()

    @property
    def dispatcher(self) -> Any:
        """The function as numba has it."""
        if self._dispatcher is not None:
            return self._dispatcher
        import numba as nb  # noqa: PLC0415 - takes a third of a second

        options = {"nogil": True, "_nrt": False, "error_model": "numpy", "forceinline": self._inline}
        if not self._is_numbas:
            options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        self._dispatcher = nb.njit(**options)(self.py_func)  # known from here on: the function may call itself
        self._dispatcher.compile(self._returns.numbas()(*(kind.numbas() for kind in self._takes)))
        self._dispatcher.disable_compile()
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for where another function calls it."""
        return self.dispatcher._numba_type_

    @cached_property
    def _file(self) -> Path:
        module = self.__module__.rpartition(".")
        name = f"{module[2]}.{self.__name__}-{self.py_func.__code__.co_firstlineno}.{_processor()}.o"
        return writable_folder(module[0]) / name

    def _opened(self) -> Callable[..., int]:
        with _LOCK:
            if self._door is None:
                self._door = self._mapped(self._content())
            return self._door

    def _content(self) -> bytes:
        """The object code of the file; compiled again if it is not what was written."""
        with suppress(OSError):
            content = self._file.read_bytes()
            if content[:_DIGEST_BYTES] == _DIGEST(content[_DIGEST_BYTES:]).digest():
                return content[_DIGEST_BYTES:]
        return self._make()

    def _mapped(self, content: bytes) -> Callable[..., int]:
        _initialize()
        machine = binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        door = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p)
        return door(self._engine.get_function_address(_DOOR))

    def _make(self) -> bytes:
        """Compile, and write the file."""
        from decoder.kernel.c_entry import object_code  # noqa: PLC0415 - loads numba

        self.is_new = True
        content: bytes = object_code(self.dispatcher, _DOOR)
        part = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            part.write_bytes(_DIGEST(content).digest() + content)
            part.replace(self._file)
        except OSError as error:
            _LOG.warning("cannot keep compiled code in %s: %s", self._file, error)
        return content


class Deferred:
    """What only numba needs, made when it first does."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target  # noqa: PLC0415 - loads numba

        made, context = self._make(), cpu_target.typing_context
        context.refresh()
        cpu_target.target_context.refresh()
        return context.resolve_value_type(made)


def _is_numba_asked() -> bool:
    return any(os.environ.get(name, "0") != "0" for name in _ASKED_OF_NUMBA)


@lru_cache(maxsize=1)
def _processor() -> str:
    """A name of what this machine's processor can do: code for another would end the process."""
    described = f"{binding.get_process_triple()} {binding.get_host_cpu_name()} {_features()}"
    return hashlib.sha256(described.encode()).hexdigest()[:12]


def _features() -> str:
    return str(binding.get_host_cpu_features().flatten())


@lru_cache(maxsize=1)
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
