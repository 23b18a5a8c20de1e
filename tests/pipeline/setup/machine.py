"""A machine as setup sees it: what it has, and what is installed on it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pipeline.setup import system
from pipeline.setup.java import Java
from pipeline.setup.system import RUNTIME_TOOLS, TEST_TOOLS, Tool

TOOLS = [tool.command for tool in (*RUNTIME_TOOLS, *TEST_TOOLS)]
GOOD = Java(Path("/jvm"), 17, has_vector=True, in_use=True)


class Machine:
    """What the machine has and may do: all of it, until a test takes something away."""

    def __init__(self) -> None:
        self.java: Java | None = GOOD
        self.tools = set(TOOLS)
        self.may_install = True
        self.installed: list[list[str]] = []

    def apt_install(self, tools: list[Tool]) -> bool:
        """Install what is asked for, so that nothing is missing any more."""
        self.installed.append([tool.command for tool in tools])
        self.java = GOOD
        self.tools = set(TOOLS)
        return True

    def stand_in(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let ``module``, which sets machines up, see this one."""
        for one in (module, system):
            monkeypatch.setattr(one, "find_java", lambda: self.java)
        monkeypatch.setattr(system.shutil, "which", lambda command: command if command in self.tools else None)
        monkeypatch.setattr(module, "may_install", lambda: self.may_install)
        monkeypatch.setattr(module, "apt_install", self.apt_install)
