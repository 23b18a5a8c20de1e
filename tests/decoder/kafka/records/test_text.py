from __future__ import annotations

import pytest

from decoder.kafka.records.text import java_text


@pytest.mark.parametrize(
    ("raw", "as_in_java"),
    [
        ("61 c3a4 e4b896 f09f9880 efbfbd", "aä世😀\ufffd"),
        ("80 bf", "\ufffd\ufffd"),
        ("c0 80", "\ufffd\ufffd"),
        ("c3 28", "\ufffd("),
        ("e282", "\ufffd"),
        ("e28241", "\ufffdA"),
        ("e0 80 80", "\ufffd\ufffd\ufffd"),
        ("f0 80 80 80", "\ufffd\ufffd\ufffd\ufffd"),
        ("f09f98", "\ufffd"),
        ("f09f9841", "\ufffdA"),
        ("f4 90 80 80", "\ufffd\ufffd\ufffd\ufffd"),
        ("f8 88 80 80 80", "\ufffd\ufffd\ufffd\ufffd\ufffd"),
        ("eda080", "\ufffd"),
        ("eda080 edb080", "\ufffd\ufffd"),
        ("eda0", "\ufffd"),
        ("eda041", "\ufffdA"),
        ("e282 eda080", "\ufffd\ufffd"),
        ("eda0 c3a4", "\ufffdä"),
        ("eda080 80", "\ufffd\ufffd"),
        ("ed41", "\ufffdA"),
        ("ed9fbf", "\ud7ff"),
    ],
)
def test_what_is_no_utf8_is_replaced_as_by_java(raw, as_in_java):
    """As ``new String(bytes, UTF_8)`` gives it in Java 17 and 25."""
    assert java_text(bytes.fromhex(raw)) == as_in_java
