"""Every store keeps the same promises; what cannot be used is reported at once, without credentials."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from pipeline.capture.landing.object_stores import ObjectStore, open_store
from pipeline.capture.landing.stores import STAGING, LandingError, LocalStore, Store
from pipeline.capture.runs.reading import read_capture
from tests.pipeline.capture.landing.test_landing import MIDNIGHT, capture, contents, everything, visible
from tests.pipeline.capture.s3 import S3, SECRET_KEY

BIG = bytes(range(256)) * 4096 * 11
"""More than one part of an upload."""


@pytest.fixture(params=["path", "file URL", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Callable[[], dict[str, bytes]]]:
    """A landing zone, and what it holds."""
    if request.param == "s3":
        server: S3 = request.getfixturevalue("s3")
        return server.url("some/prefix"), lambda: server.objects("some/prefix")
    url = str(tmp_path / "a b") if request.param == "path" else f"{tmp_path.as_uri()}/a%20b"
    return url, lambda: contents(tmp_path / "a b")


def test_a_store_gives_back_what_was_written(place):
    store = open_store(place[0])
    assert store.size("x/y") is None
    assert store.read("x/y") is None
    store.write([("_manifest/y", b"about y"), ("x/y", BIG)])
    store.write([("x/y", BIG)])
    assert (store.size("x/y"), store.read("x/y")) == (len(BIG), BIG)
    assert place[1]() == {"_manifest/y": b"about y", "x/y": BIG}


def test_a_capture_lands_alike_everywhere_and_once(place, tmp_path):
    path = capture(tmp_path / "x.pcap")
    url, held = place
    first = read_capture([path], url)
    there = held()
    assert set(first.files) <= set(there)
    assert read_capture([path], url).files_present == first.files
    read_capture([path], tmp_path / "plain")
    assert held() == there == contents(tmp_path / "plain")


def test_settings_of_s3_come_from_the_environment_too(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.port}")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    open_store(f"s3a://{s3.bucket}/x/").write([("y", b"1")])
    assert s3.objects("x") == {"y": b"1"}


def test_a_bucket_that_does_not_exist(s3):
    with pytest.raises(LandingError, match="there is no bucket other"):
        open_store(s3.url("x").replace(s3.bucket, "other"))


def test_an_endpoint_that_does_not_answer(s3):
    s3.stop()
    with pytest.raises(LandingError, match="check that the endpoint is right") as failed:
        open_store(s3.url("x"))
    assert SECRET_KEY not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://key:canary-secret-key@bucket/x", "credentials do not belong into the URL"),
        ("s3://bucket/x?secret_key=canary-secret-key", "takes endpoint and region"),
        ("s3:///x", "names no bucket"),
        ("http://host/x", "http:// is not supported"),
        ("hdfs://host/x", "hdfs:// is not supported"),
    ],
)
def test_urls_that_are_no_landing_zone(url, reason):
    with pytest.raises(LandingError, match=reason) as failed:
        open_store(url)
    assert SECRET_KEY not in str(failed.value)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file" / "landing", tmp_path / "file"):
        with pytest.raises(LandingError, match="cannot be written"):
            open_store(place)


def test_files_are_staged_under_names_that_no_reader_looks_at(tmp_path):
    script = """
import sys
from pipeline.capture.landing.stores import LocalStore
def hook(event, arguments):
    if event == "os.rename":
        print(arguments[0], arguments[1], sep="\\n")
sys.addaudithook(hook)
LocalStore(sys.argv[1]).write([("_manifest/a.json", b"{}"), ("date=2/a.parquet", b"1")])
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    seen = [str(Path(line).relative_to(tmp_path)) for line in done.stdout.splitlines()]
    assert seen[1::2] == ["_manifest/a.json", "date=2/a.parquet"]
    assert all(name.startswith(f"{STAGING}/.") and name.endswith(".tmp") for name in seen[::2])


def test_what_was_announced_but_never_appeared_is_withdrawn(tmp_path):
    """Killed between the two renames: the manifest is there, the file is not, and nobody deleted it."""
    store = LocalStore(tmp_path)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    for number in ("0000", "0001"):
        name = f"a-{MIDNIGHT}-{number}"
        (tmp_path / STAGING / f".{name}.parquet.{os.uname().nodename}.{ended.pid}.1f.7.tmp").touch()
        place = f"date=2023-11-15/{name}.parquet"
        store.write([(f"_manifest/{name}.json", json.dumps({"path": place}).encode())])
    store.write([(place, b"it appeared")])
    store.clear_stale("a")
    assert everything(tmp_path) == [f"_manifest/{name}.json", place]


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_a_manifest_does_not_stay_if_its_file_cannot_appear(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zone" / "_manifest").mkdir(parents=True)
    (tmp_path / "zone" / "date=2023-11-15").write_text("in the way")
    store = LocalStore(tmp_path / "zone") if kind == "directory" else ObjectStore(LocalFileSystem(), "zone", "zone")
    files = [("_manifest/a.json", b"{}"), ("date=2023-11-15/a.parquet", b"1")]
    with pytest.raises(LandingError):
        store.write(files)
    assert everything(tmp_path / "zone") == ["date=2023-11-15"]
    (tmp_path / "zone" / "date=2023-11-15").unlink()
    (tmp_path / "zone" / "date=2023-11-15").mkdir()
    store.write(files)
    assert contents(tmp_path / "zone") == dict(files)


def test_only_what_dead_processes_of_the_same_agent_left_is_cleared(tmp_path):
    def left_by(pid: int, process: str = "1f", agent: str = "a", host: str = os.uname().nodename) -> str:
        name = f".{agent}-{MIDNIGHT}-0000.parquet.{host}.{pid}.{process}.7.tmp"
        (tmp_path / STAGING / name).touch()
        return f"{STAGING}/{name}"

    store: Store = LocalStore(tmp_path)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    stale = {left_by(ended.pid), left_by(os.getpid())}
    kept = {
        left_by(os.getppid()),
        left_by(ended.pid, agent="a-1"),
        left_by(ended.pid, agent="b"),
        left_by(ended.pid, host="elsewhere"),
    }
    (tmp_path / STAGING / "notes.txt").touch()
    assert stale | kept < set(everything(tmp_path))
    store.clear_stale("a")
    assert set(everything(tmp_path)) == kept | {f"{STAGING}/notes.txt"}
    assert visible(tmp_path) == []
