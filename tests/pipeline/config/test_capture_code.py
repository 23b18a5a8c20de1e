"""The functions that decide whether captures are read by the block are there, under these names."""

from __future__ import annotations

from importlib import import_module

import pytest

from decoder.kernel.compiled import Kernel
from pipeline.config.memory_limits import CAPTURE_CODE

NAMED = [(package, *name.split(".")) for package, names in CAPTURE_CODE.items() for name in names]


@pytest.mark.parametrize(("package", "module", "function"), NAMED)
def test_it_is_compiled_code(package: str, module: str, function: str) -> None:
    assert isinstance(getattr(import_module(f"{package}.{module}"), function), Kernel)
