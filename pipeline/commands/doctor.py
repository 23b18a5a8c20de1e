"""``wirelake doctor``: what this machine lacks, and the command that fixes it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from pipeline.setup.jars import JarError, spark_jars_dir, unfit_jars
from pipeline.setup.java import MIN_JAVA, VECTOR_MODULE, find_java
from pipeline.setup.system import (
    JAVA,
    RUNTIME_TOOLS,
    TCPDUMP,
    TEST_TOOLS,
    capture_right,
    how_to_install,
    in_checkout,
    install_command,
    may_capture,
)
from pipeline.terminal.console import Console, json_line
from wirelake.own_packages import NAMES, in_the_way, written_over

MIN_PYTHON = (3, 10)
MIN_MEMORY_GIB = 4
MIN_DISK_GIB = 2
_PACKAGES = {
    "pyspark": ("4.2.0", how_to_install("spark")),
    "delta-spark": ("4.4.0", how_to_install("spark")),
    "great-expectations": (None, how_to_install("quality")),
    "deltalake": (None, how_to_install("sql")),
    "duckdb": (None, how_to_install("sql")),
}
"""Packages beyond the core, the version that belongs with the others (None: any), and what installs them."""
_PURPOSES = {
    "pyspark": "the Spark job",
    "delta-spark": "the Spark job",
    "great-expectations": "`wirelake check`",
    "deltalake": "`wirelake sql` and other commands that read a lake",
    "duckdb": "`wirelake diagnose`",
}
"""What does not run without each package."""
_DASHBOARD = ("streamlit", how_to_install("dashboard"))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        required: without it the pipeline does not run; otherwise only ``purpose`` is missing.
        detail: what was found.
        fix: the command or action that fixes it; empty if all is well.
    """

    name: str
    ok: bool
    required: bool
    detail: str
    fix: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object a check.")] = False) -> None:
    """Show what this machine lacks and how to fix it. Exit code 2 if something that is required is missing.

    Example:

      wirelake doctor
    """
    checks = list(examine())
    if as_json:
        for check in checks:
            sys.stdout.buffer.write(json_line(asdict(check)))
        sys.stdout.flush()
    else:
        _show(checks)
    if any(check.required and not check.ok for check in checks):
        raise typer.Exit(2)


def examine() -> Iterator[Check]:
    """Look at everything, in the order in which one would fix it."""
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, MIN_PYTHON))
    yield Check("Python", sys.version_info >= MIN_PYTHON, True, found, f"install Python {wanted} or newer")
    yield from _import_names()
    with_spark = _wants_spark()
    yield _java(with_spark)
    for package, (expected, fix) in _PACKAGES.items():
        yield _package(package, expected, fix, with_spark)
    yield _dashboard()
    yield _jars(with_spark)
    for tool in (*RUNTIME_TOOLS, *(TEST_TOOLS if in_checkout() else ())):
        path = shutil.which(tool.command)
        fix = "" if path else install_command(tool)
        yield Check(tool.command, path is not None, False, path or f"not found; needed for {tool.purpose}", fix)
        if tool is TCPDUMP and path is not None:
            may, right = may_capture(path), "right to capture"
            yield Check(right, may, False, "yes" if may else "no; needed for capturing live", capture_right(path))
    yield from _resources()


def _import_names() -> Iterator[Check]:
    """What else is called as our packages are: here, on the path, or installed over them."""
    over = list(written_over())
    for name, file in over:
        fix = f"pip uninstall {name} && pip install --force-reinstall wirelake"
        yield Check(
            "import names", False, True, f"the distribution {name} has written {file} into a package of ours", fix
        )
    places = [in_the_way(name, [str(Path.cwd()), *sys.path]) for name in NAMES]
    for place in filter(None, places):
        detail = f"{place} is in the way of a package of ours; needed for `import wirelake` and for Spark here"
        yield Check("import names", False, False, detail, "rename it, or take its folder off PYTHONPATH")
    if not over and not any(places):
        yield Check("import names", True, True, "nothing else here is called decoder or pipeline")


def _wants_spark() -> bool:
    """Whether the Spark job is to run here: pyspark was installed, or this is a checkout, which has its tests."""
    return in_checkout() or _installed("pyspark") is not None


def _installed(package: str) -> str | None:
    """The version of an installed distribution; None: it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java(required: bool) -> Check:
    java = find_java()
    if java is None:
        return Check("Java", False, required, "not found; needed for the Spark job", install_command(JAVA))
    detail = f"{java.version} in {java.home}"
    if not java.suitable:
        needs = f"Spark needs {MIN_JAVA} or newer with the module {VECTOR_MODULE}"
        return Check("Java", False, required, f"{detail}; {needs}", install_command(JAVA))
    if not java.in_use:
        return Check("Java", True, True, f"{detail}; for spark-submit: export JAVA_HOME={java.home}")
    return Check("Java", True, True, detail)


def _package(name: str, expected: str | None, fix: str, required: bool) -> Check:
    found = _installed(name)
    if found is None:
        return Check(name, False, required, f"not installed; needed for {_PURPOSES[name]}", fix)
    if expected is not None and found != expected:
        return Check(
            name, False, True, f"{found}; the others belong with {expected}", f"pip install {name}=={expected}"
        )
    return Check(name, True, True, found)


def _dashboard() -> Check:
    """Only the web page needs it."""
    package, fix = _DASHBOARD
    found = _installed(package)
    if found is not None:
        return Check(package, True, False, found)
    return Check(package, False, False, "not installed; needed for `wirelake dashboard`", fix)


def _jars(required: bool) -> Check:
    fix = "wirelake setup"
    try:
        unfit = unfit_jars(spark_jars_dir())
    except JarError as error:
        return Check("Delta jars", False, required, str(error), fix)
    if unfit:
        names = ", ".join(jar.file_name for jar in unfit)
        return Check("Delta jars", False, required, f"missing or damaged: {names}", fix)
    return Check("Delta jars", True, True, "in place, checksums match")


def _resources() -> Iterator[Check]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    yield Check(
        "memory",
        memory >= MIN_MEMORY_GIB,
        False,
        f"{memory:.1f} GiB",
        f"Spark is comfortable with {MIN_MEMORY_GIB} GiB",
    )
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    yield Check("disk", free >= MIN_DISK_GIB, False, f"{free:.1f} GiB free here", f"free {MIN_DISK_GIB} GiB")


def _show(checks: list[Check]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("", "what", "found", "to fix it"):
        table.add_column(title, overflow="fold")
    for check in checks:
        mark, style = ("✓", "green") if check.ok else ("✗", "bold red") if check.required else ("-", "yellow")
        table.add_row(Text(mark, style), check.name, check.detail, "" if check.ok else check.fix)
    console = Console()
    console.print(table)
    missing = [check.name for check in checks if check.required and not check.ok]
    verdict = f"Missing: {', '.join(missing)}." if missing else "Everything that is required is here."
    console.print(Text(verdict, "bold red" if missing else "bold green"))
