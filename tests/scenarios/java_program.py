"""How does a scenario run Kafka Streams or Connect? As Java programs of our own against their jars."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from tests.brokers.cache import CACHE, only_one_makes
from tests.brokers.maven import broker_libs

_SOURCES = Path(__file__).parent / "java_programs"


def compiled(pom: str, *names: str) -> str:
    """The class path of the programs `names` (stems of files), compiled against the jars of `pom`.

    Raises:
        MavenError: the jars cannot be had.
        subprocess.CalledProcessError: a program does not compile.
    """
    libs = broker_libs(pom)
    sources = [_SOURCES / f"{name}.java" for name in names]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = CACHE / "java" / f"{pom}-{digest}"
    with only_one_makes(classes):
        if not classes.exists():
            fresh = classes.with_suffix(".part")
            shutil.rmtree(fresh, ignore_errors=True)
            files = [str(source) for source in sources]
            subprocess.run(["javac", "--release", "17", "-cp", f"{libs}/*", "-d", str(fresh), *files], check=True)
            fresh.rename(classes)
    return f"{classes}:{libs}/*"


class Program:
    """A Java process for as long as the context; the end of its standard input, or SIGTERM, ends it in good order.

    Args:
        by_signal: it does not look at its standard input.

    Attributes:
        output: what it printed, at most the last 4000 characters, once it has ended.
    """

    def __init__(self, class_path: str, main: str, *arguments: str, by_signal: bool = False) -> None:
        java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path, main]
        self._command, self._by_signal = [*java, *arguments], by_signal
        self.output = ""

    def __enter__(self) -> Program:
        self._output = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=self._output, stderr=subprocess.STDOUT, text=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        died = self._process.poll()
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._by_signal:
            self._process.terminate()
        try:
            self._process.wait(40)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.seek(0)
        self.output = self._output.read()[-4000:]
        self._output.close()
        if died is not None and error is None:
            raise RuntimeError(f"{self._command[-1]} ended by itself with {died}:\n{self.output}")
