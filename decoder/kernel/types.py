"""The types of kernel functions, written as numba writes them; importing numba itself takes a third of a second.

``int64[:, ::1]`` is a C-contiguous array of two dimensions, ``Array(uint8, 1, "C", readonly=True)`` one that is only
read.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

_AS_INT, _AS_REAL = struct.Struct("q"), struct.Struct("d")
Words = list[int]
"""What a kernel function takes, in 64 bits each: numbers, and of arrays what numba's array structure holds."""


class Type:
    """What a kernel function takes or returns."""

    def put(self, words: Words, value: Any) -> None:
        """Append the words of an argument.

        Raises:
            TypeError: it is of another type.
        """
        raise NotImplementedError

    def take(self, words: Sequence[int]) -> Any:
        """Make what a function returned of the words that it wrote."""
        raise NotImplementedError

    def numbas(self) -> Any:
        """The same as numba's type."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scalar(Type):
    """A number, by numpy's name of its type."""

    name: str
    dtype: np.dtype[Any] = field(init=False, repr=False, compare=False)
    """Numpy's type."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.name))

    def __getitem__(self, place: slice | tuple[slice, ...]) -> Array:
        return Array(self, len(place) if isinstance(place, tuple) else 1, "C")

    def put(self, words: Words, value: Any) -> None:  # noqa: D102
        if type(value) is not int:
            value = int(value.__index__() if hasattr(value, "__index__") else _truth(value))
        words.append(value if value < 2**63 else value - 2**64)

    def take(self, words: Sequence[int]) -> Any:  # noqa: D102
        if self.name == "bool":
            return bool(words[0] & 0xFF)
        return words[0] & (2**64 - 1) if self.name == "uint64" else words[0]

    def numbas(self) -> Any:  # noqa: D102
        import numba as nb  # noqa: PLC0415

        return nb.boolean if self.name == "bool" else getattr(nb, self.name)


@dataclass(frozen=True)
class Real(Scalar):
    """A floating-point number."""

    def put(self, words: Words, value: Any) -> None:  # noqa: D102
        words += _AS_INT.unpack(_AS_REAL.pack(value))

    def take(self, words: Sequence[int]) -> float:  # noqa: D102
        (value,) = _AS_REAL.unpack(_AS_INT.pack(words[0]))
        return float(value)


def _stated_address(array: Any) -> int:
    """Where an array's data begin."""
    address: int = array.__array_interface__["data"][0]
    return address


def _read_address(array: Any) -> int:
    """The same, a fifth of the time: numpy's C structure has it behind the head that all objects have."""
    return _WORD_AT(id(array) + _HEAD).value


_WORD_AT, _HEAD = ctypes.c_ssize_t.from_address, object.__basicsize__
_TRIED = np.zeros(2, np.uint8)[1:]
_address = _read_address if _read_address(_TRIED) == _stated_address(_TRIED) else _stated_address


def _truth(value: Any) -> bool:
    if isinstance(value, np.bool_):
        return bool(value)
    raise TypeError(f"a number is needed, not {type(value).__name__}")


@dataclass(frozen=True)
class Void(Type):
    """Nothing returned."""

    def take(self, words: Sequence[int]) -> None:  # noqa: D102
        return None

    def numbas(self) -> Any:  # noqa: D102
        import numba as nb  # noqa: PLC0415

        return nb.void


@dataclass(frozen=True)
class Array(Type):
    """A C-contiguous array of numbers."""

    of: Scalar
    dimensions: int
    layout: Literal["C"]
    readonly: bool = False

    def put(self, words: Words, value: Any) -> None:  # noqa: D102
        kind, flags = value.dtype, value.flags
        if (
            (kind is not self.of.dtype and kind != self.of.dtype)
            or value.ndim != self.dimensions
            or not flags.c_contiguous
            or not flags.aligned
            or not (self.readonly or flags.writeable)
        ):
            raise TypeError(f"an array of {self} is needed, not {kind} of {value.ndim} dimensions")
        words += (0, 0, value.size, kind.itemsize, _address(value))
        words += value.shape
        words += value.strides

    def numbas(self) -> Any:  # noqa: D102
        import numba as nb  # noqa: PLC0415

        return nb.types.Array(self.of.numbas(), self.dimensions, self.layout, readonly=self.readonly)


@dataclass(frozen=True)
class UniTuple(Type):
    """This many of one type."""

    of: Scalar
    count: int

    def take(self, words: Sequence[int]) -> tuple[Any, ...]:  # noqa: D102
        return tuple(words[: self.count])

    def numbas(self) -> Any:  # noqa: D102
        import numba as nb  # noqa: PLC0415

        return nb.types.UniTuple(self.of.numbas(), self.count)


@dataclass(frozen=True)
class NamedTuple(Type):
    """A named tuple of arrays."""

    of: Sequence[Type]
    made_by: Callable[..., Any]

    def put(self, words: Words, value: Any) -> None:  # noqa: D102
        if type(value) is not self.made_by:
            raise TypeError(f"{self.made_by} is needed, not {type(value)}")
        for kind, part in zip(self.of, value, strict=True):
            kind.put(words, part)

    def numbas(self) -> Any:  # noqa: D102
        import numba as nb  # noqa: PLC0415

        kinds = [kind.numbas() for kind in self.of]
        if all(kind == kinds[0] for kind in kinds):
            return nb.types.NamedUniTuple(kinds[0], len(kinds), self.made_by)
        return nb.types.NamedTuple(kinds, self.made_by)


class Constant(Type):
    """What stays as it is from call to call: its words are made once."""

    def __init__(self, of: Type) -> None:
        self._of = of
        self._last: tuple[Any, Words] = (None, [])

    def put(self, words: Words, value: Any) -> None:  # noqa: D102
        last, found = self._last
        if last is not value:
            found = []
            self._of.put(found, value)
            self._last = (value, found)
        words += found

    def numbas(self) -> Any:  # noqa: D102
        return self._of.numbas()


def NamedUniTuple(of: Type, count: int, made_by: Callable[..., Any]) -> NamedTuple:  # noqa: N802 - as numba
    """A named tuple of this many arrays of one type."""
    return NamedTuple([of] * count, made_by)


void = Void()
boolean = Scalar("bool")
uint8, uint32, uint64 = Scalar("uint8"), Scalar("uint32"), Scalar("uint64")
int32, int64 = Scalar("int32"), Scalar("int64")
float64 = Real("float64")
