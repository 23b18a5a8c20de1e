"""A place in S3 is the same place in whatever way it is written, for the agent, the job and readers of a lake."""

from __future__ import annotations

import pytest

from pipeline.errors import UserError
from pipeline.lake.s3 import S3Place
from pipeline.streaming.landing.reading import Landing
from pipeline.streaming.storage.lake import Lake

VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "place", ["s3://bucket/a/lake", "s3a://bucket/a/lake/", "S3://bucket/a/lake?endpoint=http://minio:9000&region=x"]
)
def test_each_way_to_write_it_is_one_place(place: str) -> None:
    found = S3Place.of(place)
    assert found is not None
    assert (found.for_hadoop, found.for_delta) == ("s3a://bucket/a/lake", "s3://bucket/a/lake")
    assert Lake.at(place).root == Landing.at(place).root == "s3a://bucket/a/lake"


def test_escapes_are_those_of_who_reads_it() -> None:
    found = S3Place.of("s3://bucket/a%20b/lake")
    assert found is not None
    assert (found.for_hadoop, found.for_delta) == ("s3a://bucket/a b/lake", "s3://bucket/a%20b/lake")


@pytest.mark.parametrize("place", ["lake", "/s3/lake", "file:///lake", "gs://bucket/lake", "abfss://a@b/lake", "s3"])
def test_other_places_are_none_of_it(place: str) -> None:
    assert S3Place.of(place) is None


def test_settings_are_those_of_the_url_before_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert S3Place.of("s3://bucket") == S3Place("bucket", "", None, None)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://any.example/")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "any")
    assert S3Place.of("s3://bucket") == S3Place("bucket", "", "https://any.example", "any")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example")
    monkeypatch.setenv("AWS_REGION", "here")
    assert S3Place.of("s3://bucket") == S3Place("bucket", "", "https://s3.example", "here")
    given = S3Place.of("s3://bucket?endpoint=http://minio:9000&region=there")
    assert given == S3Place("bucket", "", "http://minio:9000", "there")


def test_plain_http_is_used_only_where_the_endpoint_says_so() -> None:
    for endpoint, allowed in (("http://minio:9000", "true"), ("https://minio:9000", "false")):
        place = S3Place.of(f"s3://bucket/lake?endpoint={endpoint}&region=x")
        assert place is not None
        assert place.delta_options == {
            "AWS_REGION": "x", "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": allowed,
        }  # fmt: skip
    amazon = S3Place.of("s3://bucket/lake")
    assert amazon is not None
    assert amazon.delta_options == {}


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("s3://key:canary-secret-key@bucket/x", "credentials do not belong into the URL"),
        ("s3://bucket/x?secret_key=canary-secret-key", "takes endpoint and region"),
        ("s3:///x", "names no bucket"),
        ("s3a://bucket/x?endpoint=minio:9000", "minio:9000 is no endpoint of S3: it begins with https:// or http://"),
    ],
)
def test_what_is_no_place_is_a_sentence_without_secrets(place: str, reason: str) -> None:
    for at in (S3Place.of, Lake.at, Landing.at):
        with pytest.raises(UserError, match=reason) as failed:
            at(place)
        assert "canary" not in str(failed.value)
