"""What MkDocs calls while it builds: documents beside ``docs`` become pages, and links lead to pages."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT))

from website.links import PAGES, in_site  # noqa: E402
from website.moved import old_pages  # noqa: E402
from website.notebooks import page as notebook_page  # noqa: E402

_SOURCES = {page: source for source, page in PAGES.items()}


def on_config(config: Any) -> Any:
    """Add each decision and each rule to the contents."""
    for title, folder in (("Decisions", "adr"), ("Rules", "rules")):
        pages = sorted(path.name for path in (_ROOT / "docs" / folder).glob("*.md") if path.name != "README.md")
        index = [f"{folder}/README.md"] if (_ROOT / "docs" / folder / "README.md").exists() else []
        config.nav.append({title: [*index, *(f"{folder}/{name}" for name in pages)]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the documents that are elsewhere."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(_ROOT / source).read_text(encoding="utf-8")))
    for path in sorted((_ROOT / "notebooks").glob("*.ipynb")):
        text, pictures = notebook_page(json.loads(path.read_text(encoding="utf-8")), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make a page's links right in the site."""
    path = page.file.src_uri
    try:
        return in_site(markdown, _SOURCES.get(path) or _source_of(path), _ROOT)
    except FileNotFoundError as error:
        raise PluginError(str(error)) from None


def on_post_build(config: Any) -> None:
    """Write pages for old addresses."""
    for address, text in old_pages():
        file = Path(config.site_dir, address)
        if file.exists():
            raise PluginError(f"{address} moved, and is a page")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _source_of(page: str) -> str:
    return page.removesuffix(".md") + ".ipynb" if page.startswith("notebooks/") else f"docs/{page}"
