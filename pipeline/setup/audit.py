"""Known vulnerabilities of what a release is made of: ``python -m pipeline.setup.audit dist``.

Reads the newest bill of materials that ``make dist`` wrote, and ``requirements.lock``, which has what tests need, too.
Licences are compared with a list of those that we may ship beside; versions are looked up in OSV, which knows the
advisories of Python packages and of jars. Whatever could not be looked up is reported, and never counted as sound.
pip-audit would do for the packages, but knows no jars: both are asked for together.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

OSV = "https://api.osv.dev"
_LOCK = Path(__file__).parents[2] / "requirements.lock"
_AT_ONCE = 500
"""Versions in one request; OSV takes up to 1,000."""
_TIMEOUT_S = 30
_ANY = "pkg:pypi/pip@25.0"
"""A version to ask for where it does not matter which."""
_PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)", re.MULTILINE)

_PERMITTED = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "LLVM-exception",
        "MIT",
        "MIT-0",
        "MIT-CMU",
    ),
    *("PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
    *("LGPL-2.1-or-later", "MPL-2.0"),
}
"""MPL and LGPL: as packages of their own, which users can replace; we neither change nor copy them."""
_TROVE = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
    "License :: OSI Approved :: GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.1-or-later",
}
_READ_BY_HAND = {"asttokens": "Apache-2.0", "protobuf": "BSD-3-Clause", "pydeck": "Apache-2.0"}
"""Packages whose metadata name no licence: what their licence files state."""
_NOT_A_LICENCE = re.compile(r"\b(?:AND|OR|WITH)\b|[()]")


class UnreachableError(Exception):
    """The source of advisories did not answer, or not as it should."""


def licence_faults(bom: dict[str, Any]) -> list[str]:
    """Python packages whose licences are not all among those that are permitted, or not known."""
    faults = []
    for component in bom["components"]:
        if not str(component.get("purl", "")).startswith("pkg:pypi/"):
            continue
        name = component["name"]
        licences = set(_licences(component)) or {_READ_BY_HAND.get(name, "not in its metadata")}
        if refused := sorted(licences - _PERMITTED):
            faults.append(f"{name} {component['version']}: {', '.join(refused)}")
    return faults


def _licences(component: dict[str, Any]) -> Iterable[str]:
    for entry in component.get("licenses", []):
        licence = entry.get("license", {})
        text = entry.get("expression") or licence.get("id") or licence.get("name") or ""
        yield from (
            _NOT_A_LICENCE.sub(" ", _TROVE.get(text, text)).split() if text in _TROVE or "::" not in text else [text]
        )


def versions(bom: dict[str, Any], lock: str) -> tuple[list[str], list[str]]:
    """Package URLs to look up, and the jars that have none since nothing in them shows where they are from."""
    known = {str(component["purl"]).partition("?")[0] for component in bom["components"] if component.get("purl")}
    pinned = {f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}" for name, version in _PINNED.findall(lock)}
    unknown = [f"{found['name']}-{found['version']}" for found in bom["components"] if not found.get("purl")]
    return sorted(known | pinned), sorted(unknown)


def advisories(purls: Sequence[str], server: str = OSV) -> dict[str, list[str]]:
    """The ids of what is known against each version; those against which nothing is known are left out.

    Args:
        purls: package URLs with versions.
        server: where OSV answers.

    Raises:
        UnreachableError: it did not answer for all of them.
    """
    found: dict[str, list[str]] = {}
    for start in range(0, len(purls), _AT_ONCE):
        asked = purls[start : start + _AT_ONCE]
        results = _ask(server, asked)
        if len(results) != len(asked):
            raise UnreachableError(f"{server} answered for {len(results)} of {len(asked)} versions")
        for purl, result in zip(asked, results, strict=True):
            if ids := [str(advisory["id"]) for advisory in result.get("vulns", [])]:
                found[purl] = ids
    return found


def _ask(server: str, purls: Sequence[str]) -> list[dict[str, Any]]:
    body = json.dumps({"queries": [{"package": {"purl": purl}} for purl in purls]}).encode()
    request = urllib.request.Request(  # noqa: S310 - our own URL
        f"{server}/v1/querybatch", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310
            results: list[dict[str, Any]] = json.load(response)["results"]
            return results
    except (urllib.error.URLError, OSError, ValueError, KeyError, TypeError) as error:
        raise UnreachableError(f"{server} cannot be asked: {error}") from error


def audit(bom: dict[str, Any], lock: str, server: str = OSV) -> tuple[bool, list[str]]:
    """Whether nothing speaks against what was looked up, and the lines of the report."""
    faults = licence_faults(bom)
    packages = sum(str(component.get("purl", "")).startswith("pkg:pypi/") for component in bom["components"])
    jars = sum(component["bom-ref"].startswith("jar:") for component in bom["components"])
    report = [f"licences: {packages} Python packages, {len(faults)} not permitted or not known", *faults]
    report.append(f"jars: {jars} of Spark and Delta, listed with their SHA-256; Spark's LICENSE lists their licences")
    purls, unknown = versions(bom, lock)
    try:
        known = advisories(purls, server)
    except UnreachableError as error:
        report.append(f"advisories: NOT LOOKED UP, none of {len(purls)} versions: {error}")
        report.append("with a network, type `make audit` again, or give the bill of materials to a scanner of your own")
        return not faults, report
    report.append(f"advisories: {len(purls)} versions looked up at {server}, {len(known)} of them have some")
    report += [f"{purl}: {', '.join(ids)}" for purl, ids in known.items()]
    if unknown:
        report.append(f"not looked up, {len(unknown)} jars that do not name their origin: {', '.join(unknown)}")
    return not faults and not known, report


def without_bom(folder: Path, server: str = OSV) -> tuple[bool, str]:
    """Where there is no bill of materials: whether that is for want of a network, and a sentence that says so."""
    nothing = (
        f"NOT LOOKED UP, neither licences nor advisories: {folder} has no bill of materials, and none can be built"
    )
    try:
        _ask(server, [_ANY])
    except UnreachableError as error:
        return True, f"{nothing} without a network: {error}"
    return False, f"{nothing}, though {server} answers: type `make dist`, and fix what it reports"


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit a bill of materials.

    Returns 0, also if nothing could be looked up for want of a network; 1 if something speaks against a version or a
    licence, or if there is no bill of materials in spite of a network.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bom", type=Path, help="what `make dist` wrote, or the folder: the newest in it")
    parser.add_argument("--server", default=OSV, help="another server that answers as OSV does")
    chosen = parser.parse_args(arguments)
    found = [chosen.bom] if chosen.bom.is_file() else sorted(chosen.bom.glob("*.cdx.json"), key=_age)
    if found:
        bom = json.loads(found[-1].read_text(encoding="utf-8"))
        is_good, report = audit(bom, _LOCK.read_text(encoding="utf-8"), chosen.server)
        report.insert(0, f"looked at: {found[-1]}")
    else:
        is_good, line = without_bom(chosen.bom, chosen.server)
        report = [line]
    sys.stdout.write("\n".join(report) + "\n")
    return 0 if is_good else 1


def _age(file: Path) -> float:
    return file.stat().st_mtime


if __name__ == "__main__":
    raise SystemExit(main())
