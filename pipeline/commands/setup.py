"""``wirelake setup``: install what the Spark job needs and pip does not bring."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from pipeline.errors import UserError
from pipeline.setup.jars import DELTA_JARS, JarError, install_jars, spark_jars_dir, unfit_jars
from pipeline.setup.java import MIN_JAVA, VECTOR_MODULE, find_java
from pipeline.setup.system import (
    JAVA,
    RUNTIME_TOOLS,
    apt_install,
    install_command,
    may_install,
    missing_tools,
    offered,
)
from pipeline.terminal.console import Console


def setup(
    system: Annotated[
        bool, typer.Option("--system", help="Also install Java, tcpdump and tshark by apt-get, where they are missing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Install system packages without asking.")] = False,
) -> None:
    """Download the two jars that the Spark job needs.

    They are those of Delta Lake, checked against their pinned SHA-256.

    The Spark job (`stream`, `check`, `backfill`, `maintain`, `demo`) needs them; all other commands run without.
    Nothing else is installed, unless --system asks for it. Running it again downloads only what is missing.

    The exit code is 2 if something that the Spark job needs is still missing.

    Examples:

      wirelake setup

      sudo wirelake setup --system
    """
    console = Console()
    if system:
        _install_packages(yes, console)
    _install_jars(console)
    _demand_java()


def _install_packages(sure: bool, console: Console) -> None:
    """List the system packages that are missing, ask, and install them.

    Raises:
        UserError: this user cannot install packages here, or apt-get failed.
    """
    missing = missing_tools(RUNTIME_TOOLS)
    if not missing:
        console.print("Java, tcpdump and tshark are installed.")
        return
    if not may_install():
        commands = "\n".join(f"  {install_command(tool)}" for tool in missing)
        raise UserError(f"--system installs packages on Debian and Ubuntu, as root. Type instead:\n{commands}")
    for tool in missing:
        console.print(Text(f"{offered(tool.debian)}, for {tool.purpose}"), soft_wrap=True)
    if not sure and not typer.confirm("Install these packages by apt-get?"):
        console.print("Nothing was installed.")
        return
    if not apt_install(missing):
        raise UserError("apt-get failed; its messages are above. Fix that, then run `wirelake setup --system` again.")


def _install_jars(console: Console) -> None:
    try:
        folder = spark_jars_dir()
        fetched = install_jars(folder) if unfit_jars(folder) else []
    except JarError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(
            f"cannot write {folder}: {error.strerror}. Run `wirelake setup` as the user who installed pyspark."
        ) from None
    for jar in fetched:
        console.print(Text(f"Downloaded {jar.coordinates}"))
    if not fetched:
        console.print(Text(f"All {len(DELTA_JARS)} Delta jars are in place, and their checksums match."))


def _demand_java() -> None:
    """Raise UserError unless Spark would find a Java that it can run on."""
    java = find_java()
    if java is None or not java.suitable:
        raise UserError(
            f"the Spark job needs Java {MIN_JAVA} or newer with the module {VECTOR_MODULE}. Type: "
            f"{install_command(JAVA)}"
        )
