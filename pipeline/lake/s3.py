"""A place in S3 as users write it: one spelling for the agent, the job, and whoever reads a lake.

``s3://`` and ``s3a://`` are the same. Endpoint and region are in the URL's query, or in what the store's own tools read
(the environment); credentials in the latter alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pipeline.errors import UserError

SCHEMES = ("s3", "s3a")
_OPTIONS = ("endpoint", "region")


@dataclass(frozen=True, slots=True)
class S3Place:
    """A bucket and a prefix in it.

    Attributes:
        bucket: its name.
        prefix: without a slash at either end; may be empty.
        endpoint: URL of the store; None: Amazon's.
        region: None: as the store's client finds it.
    """

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None

    @classmethod
    def of(cls, place: str) -> S3Place | None:
        """The place that a URL names; None: it is none of S3.

        Raises:
            UserError: the URL names no bucket, has unknown settings, or shows credentials; the message does not.
        """
        if not is_s3(place):
            return None
        url = urlsplit(place)
        if url.username is not None or url.password is not None:
            raise UserError(
                "credentials do not belong into the URL, where every process list shows them; put them into the "
                "environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or ~/.aws/credentials"
            )
        if not url.hostname:
            raise UserError(f"{place}: the URL names no bucket (s3://bucket/prefix)")
        options = dict(parse_qsl(url.query, keep_blank_values=True))
        if unknown := sorted(options.keys() - set(_OPTIONS)):
            raise UserError(f"?{unknown[0]}= is not known; an S3 URL takes {' and '.join(_OPTIONS)}")
        environment = os.environ.get
        endpoint = options.get("endpoint") or environment("AWS_ENDPOINT_URL_S3") or environment("AWS_ENDPOINT_URL")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise UserError(f"{endpoint} is no endpoint of S3: it begins with https:// or http://")
        region = options.get("region") or environment("AWS_REGION") or environment("AWS_DEFAULT_REGION")
        return cls(url.netloc, unquote(url.path).strip("/"), (endpoint or "").rstrip("/") or None, region or None)

    @property
    def for_hadoop(self) -> str:
        """The URL by which Spark reads and writes it."""
        return f"s3a://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def for_delta(self) -> str:
        """The URL by which delta-rs reads it."""
        return f"s3://{self.bucket}/{quote(self.prefix)}".rstrip("/")

    @property
    def delta_options(self) -> dict[str, str]:
        """The settings of delta-rs for it. Plain http is used where the endpoint says so, and nowhere else."""
        options = {"AWS_REGION": self.region, "AWS_ENDPOINT_URL": self.endpoint}
        if self.endpoint is not None:
            options["AWS_ALLOW_HTTP"] = str(self.endpoint.startswith("http://")).lower()
        return {name: value for name, value in options.items() if value is not None}


def is_s3(place: str) -> bool:
    """Whether a place is written as a URL of S3."""
    return place.partition("://")[0].lower() in SCHEMES and "://" in place
