"""What stops a release: a tag, a version and a changelog that do not name the same one."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT
from tests.release import fault, parts, version_of

_CHANGES = "# Changelog\n\n## [0.2.0] - 2026-12-01\n\n### Fixed\n\n- x\n\n## [0.1.0] - unreleased\n\nFirst.\n"


@pytest.mark.parametrize(
    ("tag", "version", "complaint"),
    [
        ("v0.2.0", "0.2.0", None),
        ("v0.2.1", "0.2.0", "the tag is v0.2.1, but pyproject.toml states version 0.2.0: tag v0.2.0"),
        ("0.2.0", "0.2.0", "the tag is 0.2.0, but pyproject.toml states version 0.2.0: tag v0.2.0"),
        ("v0.3.0", "0.3.0", "CHANGELOG.md has no text below a heading '## [0.3.0] - YYYY-MM-DD'"),
        ("v0.1.0", "0.1.0", "the heading of 0.1.0 in CHANGELOG.md needs a date: '## [0.1.0] - YYYY-MM-DD'"),
    ],
)
def test_what_does_not_agree(tag: str, version: str, complaint: str | None) -> None:
    assert fault(tag, version, _CHANGES) == complaint


def test_each_version_has_its_own_text() -> None:
    assert parts(_CHANGES) == {
        "0.2.0": ("2026-12-01", "### Fixed\n\n- x"),
        "0.1.0": ("unreleased", "First."),
    }


def test_the_changelog_is_ready_for_a_tag() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = parts(changelog)
    assert next(iter(found)) == version_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds
