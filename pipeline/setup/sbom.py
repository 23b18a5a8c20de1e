"""What is in a release, and of what it is made: ``python -m pipeline.setup.sbom dist --cyclonedx CYCLONEDX_PY``.

Builds the wheel, installs it with all its extras, in the versions of ``requirements.lock``, into an environment of its
own, and writes what is there beside the wheel as a software bill of materials (CycloneDX 1.6, JSON): Python packages
with their licences, each jar of Spark and Delta with its SHA-256. A scanner finds in it what is known to be vulnerable.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.setup.jars import DELTA_JARS

_ROOT = Path(__file__).parents[2]
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_JAR_NAME = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.\-]*)\.jar")


def build(folder: Path, cyclonedx: Path) -> tuple[Path, Path]:
    """Write the wheel and its bill of materials into ``folder``; returns both paths.

    Args:
        folder: where to; earlier ones stay.
        cyclonedx: the program ``cyclonedx-py``.

    Raises:
        UserError: a program failed; the message has its name and its output.
    """
    with tempfile.TemporaryDirectory(prefix="wirelake-release-") as work:
        _run("uv", "build", "--quiet", "--wheel", "--out-dir", f"{work}/wheel", str(_ROOT))
        [built] = Path(work, "wheel").glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        wheel = folder / built.name
        wheel.write_bytes(built.read_bytes())
        python = Path(work, "venv", "bin", "python")
        _run("uv", "venv", "--quiet", "--python", sys.executable, str(python.parents[1]))
        wanted = f"{wheel}[{','.join(_extras(wheel))}]"
        locked = ("--constraint", str(_ROOT / "requirements.lock"))
        _run("uv", "pip", "install", "--quiet", "--python", str(python), *locked, wanted)
        _run(str(cyclonedx), "environment", "--output-reproducible", "--sv", "1.6", "-o", f"{work}/bom", str(python))
        bom = json.loads(Path(work, "bom").read_text(encoding="utf-8"))
        [spark] = python.parents[1].glob("lib/*/site-packages/pyspark/jars")
        _complete(bom, wheel, [*jar_components(spark), *_delta_components()])
    target = folder / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json"
    target.write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    return wheel, target


def _run(program: str, *arguments: str) -> None:
    beside = Path(sys.executable).parent / program  # of an absolute path this is that path itself
    command = [str(beside if beside.exists() else program), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{program} cannot be started ({error.strerror}): `make dist` installs it") from error
    if done.returncode:
        raise UserError(f"{program} {arguments[0]} failed:\n{done.stderr.strip()[-1500:]}")


def _extras(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(packed.read(name).decode()).get_all("Provides-Extra") or []


def _complete(bom: dict[str, Any], wheel: Path, jars: list[dict[str, Any]]) -> None:
    """Make the wheel the subject of the bill, without its path on this machine, and add jars below pyspark."""
    [own] = [found for found in bom["components"] if found["name"] == "wirelake"]
    bom["components"].remove(own)
    own.pop("externalReferences", None)
    own |= {"type": "application", "hashes": [_hash_of(wheel.read_bytes())]}
    bom["metadata"]["component"] = own
    bom["components"] += jars
    [spark] = [known for known in bom["dependencies"] if known["ref"].startswith("pyspark==")]
    spark["dependsOn"] = sorted({*spark.get("dependsOn", []), *(jar["bom-ref"] for jar in jars)})


def jar_components(directory: Path) -> Iterator[dict[str, Any]]:
    """The jars of a folder; those whose Maven coordinates are in them or follow from nothing but their name."""
    for path in sorted(directory.glob("*.jar")):
        named = _JAR_NAME.fullmatch(path.name)
        group, artifact, version = _coordinates(path) or (
            ("", named["name"], named["version"]) if named else ("", path.stem, "")
        )
        yield _jar_component(group, artifact, version, _hash_of(path.read_bytes()))


def _delta_components() -> Iterator[dict[str, Any]]:
    for jar in DELTA_JARS:
        yield _jar_component(jar.group, jar.artifact, jar.version, {"alg": "SHA-256", "content": jar.sha256})


def _jar_component(group: str, artifact: str, version: str, digest: dict[str, str]) -> dict[str, Any]:
    component: dict[str, Any] = {"bom-ref": f"jar:{artifact}-{version}", "type": "library"}
    component |= {"name": artifact, "version": version, "hashes": [digest]}
    if group:
        component |= {"group": group, "purl": f"pkg:maven/{group}/{artifact}@{version}"}
    return component


def _coordinates(jar: Path) -> tuple[str, str, str] | None:
    """Group, artifact and version by which the jar calls itself; others may be packed into it."""
    with zipfile.ZipFile(jar) as packed:
        for name in filter(_POM.fullmatch, packed.namelist()):
            lines = packed.read(name).decode("utf-8", "replace").splitlines()
            properties = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
            group, artifact, version = (properties.get(key, "") for key in ("groupId", "artifactId", "version"))
            if jar.name == f"{artifact}-{version}.jar":
                return group, artifact, version
    return None


def _hash_of(data: bytes) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}


def main() -> int:
    """Build into the folder of the command line. Returns 0, or 2 with what has to be fixed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cyclonedx", type=Path, required=True, metavar="CYCLONEDX_PY")
    chosen = parser.parse_args()
    try:
        paths = build(chosen.folder, chosen.cyclonedx)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for path in paths:
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
