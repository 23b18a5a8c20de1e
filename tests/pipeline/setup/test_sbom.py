"""How a bill of materials distinguishes jars."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from pipeline.setup.sbom import jar_components


def test_a_jar_is_what_it_calls_itself_not_what_is_packed_into_it(tmp_path: Path) -> None:
    own, other = tmp_path / "thing_2.13-1.5.0-rc1.jar", tmp_path / "plain-2.0.jar"
    with zipfile.ZipFile(own, "w") as jar:
        jar.writestr("META-INF/maven/g/shaded/pom.properties", "groupId=g\nartifactId=shaded\nversion=9\n")
        jar.writestr(
            "META-INF/maven/org.x/thing_2.13/pom.properties",
            "groupId=org.x\nartifactId=thing_2.13\nversion=1.5.0-rc1\n",
        )
    with zipfile.ZipFile(other, "w") as jar:
        jar.writestr("a.class", b"")
    plain, thing = jar_components(tmp_path)
    assert thing["purl"] == "pkg:maven/org.x/thing_2.13@1.5.0-rc1"
    assert thing["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(own.read_bytes()).hexdigest()}]
    assert (plain["name"], plain["version"], plain.get("purl")) == ("plain", "2.0", None)
