"""Links that are right in the repository become right in the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from website.links import in_site


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "README.md",
        "SECURITY.md",
        "docs/a.md",
        "docs/adr/b.md",
        "docs/screens/c.png",
        "docs/rules/d.md",
        "x.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("docs/a.md", "[b](adr/b.md#part)", "[b](adr/b.md#part)"),
        ("docs/adr/b.md", "[a](../a.md)", "[a](../a.md)"),
        ("README.md", "[`a`](docs/a.md#x) and [b](docs/adr/b.md)", "[`a`](a.md#x) and [b](adr/b.md)"),
        ("docs/adr/b.md", "[s](../../SECURITY.md)", "[s](../promises.md)"),
        ("docs/a.md", "[the rules](rules)", "[the rules](reference/rules.md)"),
        ("docs/a.md", "[`x.py`](../x.py), a file", "`x.py`, a file"),
        ("docs/a.md", "[here](#part), [there](https://example.org/x.md)", "[here](#part), [there](https://example.org/x.md)"),
        ("docs/a.md", "`[x](gone.md)`", "`[x](gone.md)`"),
        ("docs/a.md", "```\n[x](gone.md)\n```", "```\n[x](gone.md)\n```"),
        ("README.md", '<source srcset="docs/screens/c.png">', '<source srcset="screens/c.png">'),
        ("docs/adr/b.md", '<img src="../screens/c.png">', '<img src="../screens/c.png">'),
    ],
)  # fmt: skip
def test_a_link(source: str, link: str, expected: str, root: Path) -> None:
    assert in_site(link, source, root) == expected


@pytest.mark.parametrize("text", ["[x](gone.md)", "[`x`](../gone.py)", '<img src="gone.png">'])
def test_a_dead_link_is_an_error(text: str, root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/a.md (links|shows) .*gone"):
        in_site(text, "docs/a.md", root)
