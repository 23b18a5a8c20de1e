"""A landing file that is larger than any agent writes is not read, whether it has a manifest or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.capture.landing.manifests import MOST_BYTES
from pipeline.embedded.inputs import checked, frame_files
from pipeline.streaming.landing import checked_files
from pipeline.streaming.landing.checked_files import check_files
from pipeline.streaming.storage.new_files import NewFile
from tests.hostile.landing_zones import manifest_of

TOO_LARGE = f"has {MOST_BYTES + 1} bytes; files of more than {MOST_BYTES} are not read"


@pytest.fixture
def files(zone: Path) -> list[Path]:
    """Two without a manifest: the first too large, by a hole; the second as it was."""
    first, second, *_ = frame_files(zone)
    for file in (first, second):
        manifest_of(file).unlink()
    with first.open("r+b") as opened:
        opened.truncate(MOST_BYTES + 1)
    return [first, second]


@pytest.mark.parametrize(("are_required", "statuses"), [(False, ["damaged"]), (True, ["unlisted", "unlisted"])])
def test_the_job_sets_it_aside(
    are_required: bool, statuses: list[str], zone: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sizes(_: object, paths: list[str]) -> list[int | None]:
        places = [Path(path.removeprefix("file://")) for path in paths]
        return [place.stat().st_size if place.exists() else None for place in places]

    monkeypatch.setattr(checked_files, "sizes_of", sizes)  # else it takes a JVM
    monkeypatch.setattr(checked_files, "contents", lambda _, paths: dict.fromkeys(paths, (None, "")))
    found = [NewFile(file.as_uri(), 0, None, None) for file in files]
    looked = check_files(None, str(zone), "frames", found, manifests_required=are_required)  # type: ignore[arg-type]
    assert [one.status for one in looked.set_aside] == statuses
    assert list(looked.good) == ([] if are_required else found[1:])
    assert looked.set_aside[0].reason.startswith("has no manifest" if are_required else TOO_LARGE)


def test_a_diagnosis_leaves_it_out(zone: Path, files: list[Path]) -> None:
    good, aside = checked(zone, "frames", files)
    assert good == files[1:]
    assert len(aside) == 1
    assert aside[0].startswith(f"{files[0]} {TOO_LARGE}")
