"""A notebook as a page."""

from __future__ import annotations

import base64

from website.notebooks import page


def test_words_code_and_what_was_shown() -> None:
    picture = base64.b64encode(b"PNG").decode()
    cells = [
        {"cell_type": "markdown", "source": ["# A study\n", "of it"]},
        {
            "cell_type": "code",
            "source": ["ask('x')"],
            "outputs": [
                {"output_type": "stream", "text": ["one\n", "two\n"]},
                {"output_type": "execute_result", "data": {"image/png": picture, "text/plain": ["<Figure>"]}},
                {"output_type": "execute_result", "data": {"text/html": "<b>3</b>", "text/plain": ["3"]}},
            ],
        },
    ]
    text, pictures = page({"cells": cells}, "study")
    assert text == (
        "# A study\nof it\n\n```python\nask('x')\n```\n\n```text\none\ntwo\n```\n\n"
        "![A study](study-1.png)\n\n```text\n3\n```\n"
    )
    assert pictures == {"study-1.png": b"PNG"}
