"""Machine code that an earlier process kept is mapped without numba, and gives what numba's own function gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from decoder.kernel import cache, compiled, types
from decoder.kernel.compiled import Kernel

INTS = types.int64[::1]


class Pair(NamedTuple):
    """Two arrays."""

    first: Any
    second: Any


PAIR = types.NamedUniTuple(INTS, 2, Pair)


def mixed(pair, rows, scale, is_negative, real):  # type: ignore[no-untyped-def]
    """Takes a value of each kind."""
    total = np.int64(real)
    for index in range(pair.first.shape[0]):
        total += pair.first[index] * pair.second[index]
    for row in range(rows.shape[0]):
        rows[row, 1] = rows[row, 0] * scale
        total += rows[row, 1]
    return (-total if is_negative else total), np.int64(rows.shape[0])


def wide(value):  # type: ignore[no-untyped-def]
    """Half of a number of 64 bits."""
    return value >> np.uint64(1)


def is_even(value):  # type: ignore[no-untyped-def]
    """Whether a number is even."""
    return value % 2 == 0


def half(value):  # type: ignore[no-untyped-def]
    """Half of a real number."""
    return value / 2


SIGNATURES: dict[Any, tuple[types.Type, ...]] = {
    mixed: (
        types.UniTuple(types.int64, 2), PAIR, types.int32[:, ::1], types.int64, types.boolean, types.float64,
    ),
    wide: (types.uint64, types.uint64),
    is_even: (types.boolean, types.int64),
    half: (types.float64, types.float64),
}  # fmt: skip
ARGUMENTS: dict[Any, tuple[Any, ...]] = {
    mixed: (
        Pair(np.arange(3), np.arange(3)), np.arange(8, dtype=np.int32).reshape(4, 2), np.int64(-7), np.True_, 2.5,
    ),
    wide: (2**64 - 2,),
    is_even: (-3,),
    half: (-0.5,),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    cache.writable_folder.cache_clear()
    yield tmp_path
    cache.writable_folder.cache_clear()


def made(function: Any) -> Kernel:
    returns, *takes = SIGNATURES[function]
    kernel = Kernel(function, returns, takes, inline=False)
    kernel.prepare()
    return kernel


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__name__)
def test_kept_code_gives_what_the_function_gives(function: Any) -> None:
    first, second = made(function), made(function)
    assert (first.is_new, second.is_new) == (True, False)
    expected = function(*(np.uint64(given) if function is wide else given for given in ARGUMENTS[function]))
    assert first(*ARGUMENTS[function]) == second(*ARGUMENTS[function]) == expected
    assert second._dispatcher is None  # numba took no part


@pytest.mark.parametrize("damage", [b"", b"\0" * 2000, None], ids=["empty", "other", "cut"])
def test_a_damaged_file_is_compiled_again(damage: bytes | None, folder: Path) -> None:
    made(is_even)
    (file,) = folder.rglob("*.o")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] if damage is None else damage)
    again = made(is_even)
    assert not again.is_new
    assert again(4) is True
    assert again.is_new
    assert len(file.read_bytes()) == len(whole)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, (np.arange(3), np.arange(3))),
        (1, np.zeros((2, 2))),
        (1, np.zeros(2, np.int32)),
        (1, np.zeros((2, 4), np.int32)[:, ::2]),
        (1, np.frombuffer(bytes(16), np.int32).reshape(2, 2)),
        (2, "7"),
        (2, 1.5),
    ],
    ids=["tuple", "kind", "dimensions", "gaps", "read-only", "text", "real"],
)
def test_what_is_of_another_type_is_refused(place: int, value: Any) -> None:
    arguments = list(ARGUMENTS[mixed])
    arguments[place] = value
    with pytest.raises(TypeError):
        made(mixed)(*arguments)


def test_each_argument_is_needed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        made(is_even)()


def test_what_stays_is_looked_at_once() -> None:
    kind, array = types.Constant(INTS), np.arange(3)
    first, second, other = [], [], []  # type: ignore[var-annotated]
    kind.put(first, array)
    kind.put(second, array)
    kind.put(other, np.arange(4))
    assert first == second
    assert other[2] == 4


IMPORTED = """
import sys
import numpy as np
from decoder.kernel import compiled
from decoder.kafka.batch import read_batch
found = read_batch([bytes.fromhex("0012000000000007000464656d6f")], np.array([False]), *np.array([[-1], [-1], [0]]))
print(found.outcomes.tolist(), "numba" in sys.modules)
"""


def test_no_compiler_is_imported_where_the_code_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # where this checkout's code is
    import decoder.kafka.batch  # noqa: F401, PLC0415 - compiles

    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[0]", "False"]


def test_code_for_another_processor_is_not_taken(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    made(is_even)
    monkeypatch.setattr(compiled, "_processor", lambda: "another")
    assert made(is_even).is_new
    assert len(list(folder.rglob("*.o"))) == 2
