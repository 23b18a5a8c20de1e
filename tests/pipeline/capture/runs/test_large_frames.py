"""Compiled code finds large frames clean that the plain reader finds clean, and counts the same work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decoder.redact import redact
from decoder.work import METER
from pipeline.capture.runs import large_frames
from pipeline.capture.runs.large_frames import LARGE, is_clean_by_kernel
from tests.pipeline.commands.test_large_messages import frame, metadata


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_frames, "is_capture_code_compiled", lambda: True)


def test_a_large_frame_is_clean_at_the_same_work() -> None:
    large = frame(metadata(60).replace("b-ü".encode(), b"b-uu"))
    assert len(large.frame) > LARGE
    begin = METER.units
    assert is_clean_by_kernel(large)
    by_kernel, begin = METER.units - begin, METER.units
    assert redact(large) is large
    assert METER.units - begin == by_kernel > 0


@pytest.mark.parametrize("junk", [b"x", b"secret" * 20])
def test_what_is_not_clean_is_left_to_the_plain_reader(junk: bytes) -> None:
    large = frame(metadata(60, junk=junk))
    assert not is_clean_by_kernel(large)
    assert redact(large).frame.endswith(bytes(len(junk)))


def test_so_are_small_frames_and_those_of_other_protocols() -> None:
    assert not is_clean_by_kernel(frame(metadata(1)))
    assert not is_clean_by_kernel(replace(frame(metadata(60)), protocol="mongodb"))
