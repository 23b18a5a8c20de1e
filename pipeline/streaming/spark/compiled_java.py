"""Compiles Java of ours in Spark's JVM, by the compiler (Janino) that Spark ships for its own code."""

from __future__ import annotations

from typing import Any


def compiled(jvm: Any, loader: Any, source: str) -> Any:
    """A compiler that has read a source: it gives the loader of its classes and, by name, their bytes.

    Args:
        jvm: Spark's, by py4j.
        loader: of the classes that the source names.
        source: of one Java file.
    """
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    return compiler
