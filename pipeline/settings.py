"""What can be configured, with which default, and what is allowed?

Order, first wins: command line, environment (``WIRELAKE_LAKE``, ``WIRELAKE_STREAM__TRIGGER_SECONDS``), the file given
by ``--conf`` (see ``conf/local.yaml``), the defaults below.
"""

from __future__ import annotations

import difflib
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from decoder.model import PayloadPolicy
from pipeline.errors import UserError

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Span = Annotated[timedelta, Field(gt=timedelta(0))]


class FindingSettings(BaseModel):
    """How much of a symptom makes a finding. Offsets and growth are records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stuck_commit_repeats: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Commits of the same old offset, between which another committer went beyond it"
    )
    stuck_commit_repeats_while_fetching: Annotated[int, Field(ge=2)] = Field(
        default=6,
        description="The same, where only the fetch position went beyond it: more, because an application that commits "
        "what its slowest worker has finished does this for a while in good health",
    )
    competing_returns: Count = Field(
        default=2, description="Times that a committer comes back after another took over, without a rebalance"
    )
    lso_stalled_records: Count = Field(
        default=10, description="Growth of the high watermark while the last stable offset stands still"
    )
    lso_stalled_seconds: Seconds = Field(default=5.0, description="How long it stands still")
    max_evidence: Count = Field(default=20, description="Exchange ids kept with a finding")


class StreamSettings(BaseModel):
    """The streaming job. Spans of time are seconds, or ISO 8601 (``PT10M``); event time, so that replays agree."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trigger_seconds: Seconds = Field(
        default=10.0, description="A batch starts this often, if there is anything to read"
    )
    max_files_per_trigger: Count = Field(default=200, description="Landing files that one batch reads at most")
    max_frames_files_per_trigger: Count = Field(
        default=1000, description="Files of bronze.frames that one batch of the second query reads at most"
    )
    kernel_after_frames: Annotated[int, Field(ge=0)] = Field(
        default=20_000,
        description="Frames that a Python worker reads plainly before it loads the kernel, which takes seconds",
    )
    answer_timeout: Span = Field(
        default=timedelta(minutes=10),
        description="A request is given up when its own connection went on for longer than this without the answer",
    )
    abandon_timeout: Span = Field(
        default=timedelta(days=1), description="The same, by the traffic of all connections: for those that fell silent"
    )
    lag_lookback: Span = Field(
        default=timedelta(days=7),
        description="How far back the age of an uncommitted record and transaction markers are looked up",
    )
    findings: FindingSettings = FindingSettings()


class Settings(BaseSettings):
    """All settings; immutable."""

    model_config = SettingsConfigDict(
        env_prefix="WIRELAKE_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    landing: str | None = Field(default=None, description="Folder (or URL) of the landing zone")
    lake: str | None = Field(default=None, description="Folder (or URL) of the lake")
    agent_id: str = Field(default="local", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="Name of this capture agent")
    payload_policy: PayloadPolicy = Field(default="lengths", description="What of keys and values may land")
    payload_key: SecretStr | None = Field(default=None, description="Key of the payload policy hash")
    payload_key_file: str | None = Field(default=None, description="File with that key; wins over payload_key")
    stream: StreamSettings = StreamSettings()
    spark: dict[str, str] = Field(default_factory=dict, description="Spark settings that override the built-in ones")

    @field_validator("spark", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        """YAML reads ``2`` and ``true`` as int and bool; Spark wants texts."""
        if not isinstance(value, dict):
            return value
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}

    @field_validator("spark")
    @classmethod
    def _spark_keys(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if not key.startswith("spark."):
                raise ValueError(f"{key!r} is not a Spark setting: their names begin with 'spark.'")
        return value


def load_settings(conf: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings.

    Args:
        conf: a YAML file; None for environment and defaults only.
        overrides: values from the command line; None means not given.

    Raises:
        UserError: the file cannot be read, or a key or value is not allowed; names each key and what is allowed.
    """
    content = _read_yaml(conf) if conf else {}

    class _Loaded(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[Any, ...]:
            return init_settings, env_settings, lambda: content

    try:
        loaded = _Loaded(**{key: value for key, value in overrides.items() if value is not None})
    except ValidationError as error:
        where = str(conf) if conf else "the environment"
        raise UserError("\n".join([f"settings ({where}):", *(f"  {_explain(e)}" for e in error.errors())])) from error
    return Settings.model_construct(**{name: getattr(loaded, name) for name in Settings.model_fields})


def _read_yaml(conf: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(conf.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the settings file {conf}: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{conf} is not YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(f"{conf} must hold `name: value` lines; allowed names: {', '.join(Settings.model_fields)}")
    return content


def _allowed(path: tuple[int | str, ...]) -> list[str]:
    """The keys that exist in the section ``path``."""
    model: type[BaseModel] = Settings
    for part in path:
        kind = model.model_fields[str(part)].annotation
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return []
        model = kind
    return list(model.model_fields)


def _explain(error: ErrorDetails) -> str:
    """One sentence: which key, what is wrong, what is allowed."""
    loc = error["loc"]
    key = ".".join(str(part) for part in loc)
    if error["type"] == "extra_forbidden":
        allowed = _allowed(loc[:-1])
        close = difflib.get_close_matches(str(loc[-1]), allowed, 1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        return f"{key}: there is no such key; {hint}allowed: {', '.join(allowed)}"
    message = error["msg"].removeprefix("Value error, ")
    if key == "payload_key":
        return f"{key}: {message}; put it in quotes"
    return f"{key}: {message}, not {error['input']!r}"
