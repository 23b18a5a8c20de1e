"""A notebook as a page: its words, code, and what it showed.

mkdocs-jupyter would do it, too, with nbconvert, jupytext and the packages that these need.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any


def page(notebook: Mapping[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """The page's Markdown, and its pictures by the names of their files.

    Args:
        notebook: as JSON holds it.
        name: of the page, which its pictures' names begin with.
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    heading = name
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            headings = [line.lstrip("# ") for line in source.splitlines() if line.startswith("#")]
            heading = headings[-1] if headings else heading
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if encoded := output.get("data", {}).get("image/png"):
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode("".join(encoded))
                parts.append(f"![{heading}]({file})")
            else:
                parts.extend(_text(output))
    return "\n\n".join(parts) + "\n", pictures


def _text(output: Mapping[str, Any]) -> Iterator[str]:
    text = "".join(output.get("text") or output.get("data", {}).get("text/plain", "")).strip("\n")
    if text:
        yield f"```text\n{text}\n```"
