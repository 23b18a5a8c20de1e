"""How does a scenario run Java clients? As child processes that are told by arguments and report NDJSON events."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType

from tests.brokers.cache import CACHE
from tests.brokers.maven import copy_dependencies
from tests.scenarios.truth import Truth

_PROJECT = Path(__file__).parent / "java"
NEWEST = "4.4.0"


def class_path(version: str = NEWEST) -> str:
    """Compile our clients against kafka-clients `version` (once) and return the class path.

    Raises:
        MavenError: if Maven is missing or fails.
    """
    home = CACHE / "java" / version
    profile = [] if version == NEWEST else [f"-P{version}"]
    sources = sorted(_PROJECT.rglob("*.java"))
    libs = copy_dependencies(_PROJECT / "pom.xml", home, [*profile, f"-Dhome={home}", "compile"], sources)
    return f"{home / 'classes'}:{libs}/*"


class JavaClient:
    """One Java process with one Kafka client; its events go into the truth log.

    `with JavaClient(truth, "consume", client_id="billing-2", bootstrap=…, …) as client:`; leaving it says "stop" and
    waits for the end.
    """

    def __init__(
        self, truth: Truth, command: str, *, client_id: str, version: str = NEWEST, **options: str | int | bool
    ) -> None:
        self.client_id = client_id
        self._truth = truth
        main = "Client" if version == NEWEST else "OldClient"
        values = {"client_id": client_id, **options}
        arguments = [f"{name}={str(v).lower() if isinstance(v, bool) else v}" for name, v in values.items()]
        java = ["java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path(version), main]
        self._command = [*java, command, *arguments]
        self._killed = False
        truth.client(client_id, "kafka-clients", "Java", version)

    def __enter__(self) -> JavaClient:
        self._errors, self._killed = tempfile.TemporaryFile("w+"), False
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def tell(self, word: str) -> None:
        """Send a command line: "stop" or "pause"."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it without a word to the broker, as a crash does; leaving the context then is fine."""
        self._killed = True
        self._process.kill()
        self._process.wait()

    def wait(self, timeout_s: float = 60.0) -> None:
        """Wait until the client ended by itself.

        Raises:
            RuntimeError: if it failed; with its error output.
            subprocess.TimeoutExpired: after `timeout_s` seconds.
        """
        code = self._process.wait(timeout_s)
        self._reader.join(5)
        if code != 0 and not self._killed:
            self._errors.seek(0)
            raise RuntimeError(f"Java client {self.client_id} ended with {code}:\n{self._errors.read()[-4000:]}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if self._killed:
                return
            if self._process.poll() is None:
                self.tell("stop")
            self.wait(30)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._truth.append(json.loads(line))
