"""Java clients of a scenario, compiled against kafka-clients; see client_process."""

from __future__ import annotations

from pathlib import Path

from tests.brokers.cache import CACHE
from tests.brokers.maven import copy_dependencies
from tests.scenarios.client_process import ClientProcess
from tests.scenarios.truth import Truth

_PROJECT = Path(__file__).parent / "java"
NEWEST = "4.4.0"
JAVA = ("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


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


class JavaClient(ClientProcess):
    """One Java process with one Kafka client.

    `with JavaClient(truth, "consume", client_id="billing-2", bootstrap=…, …) as client:`.
    """

    def __init__(
        self, truth: Truth, command: str, *, client_id: str, version: str = NEWEST, **options: str | int | bool
    ) -> None:
        main = "Client" if version == NEWEST else "OldClient"
        super().__init__(truth, client_id, [*JAVA, "-cp", class_path(version), main, command], {**options})
        truth.client(client_id, "kafka-clients", "Java", version)
