"""What ``make setup`` does after the Python packages, ``python -m pipeline.setup``: Java, test tools, Delta jars."""

from __future__ import annotations

import sys

from pipeline.setup.jars import JarError, install_jars
from pipeline.setup.java import MIN_JAVA, VECTOR_MODULE, find_java
from pipeline.setup.system import (
    JAVA,
    RUNTIME_TOOLS,
    TEST_TOOLS,
    Tool,
    apt_install,
    install_command,
    may_install,
    missing_tools,
)


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _missing() -> list[Tool]:
    return missing_tools((*RUNTIME_TOOLS, *TEST_TOOLS))


def main() -> int:
    """Install what is missing, as far as we may. Returns 0, or 2 with the command that a person has to type."""
    missing = _missing()
    if missing and may_install():
        _print_line(f"Installing {', '.join(tool.command for tool in missing)} …")
        if not apt_install(missing):
            _print_line("apt-get failed; its messages are above.")
        missing = _missing()
    for tool in missing:
        if tool is not JAVA:
            _print_line(
                f"Note: no {tool.command}; tests for {tool.purpose} will be skipped. To get it: {install_command(tool)}"
            )
    if JAVA in missing:
        _print_line(
            f"Java {MIN_JAVA} or newer with the module {VECTOR_MODULE} is needed. Type, then run `make setup` again:"
        )
        _print_line(f"    {install_command(JAVA)}")
        return 2
    java = find_java()
    if java is not None and not java.in_use:
        _print_line(f"Note: another Java is in use. Before anything else: export JAVA_HOME={java.home}")
    try:
        fetched = install_jars()
    except JarError as error:
        _print_line(str(error))
        return 2
    for jar in fetched:
        _print_line(f"Fetched {jar.coordinates}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
