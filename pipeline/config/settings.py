"""What can be configured, with which default, and what is allowed.

Order, first wins: command line, environment (``WIRELAKE_LAKE``, ``WIRELAKE_STREAM__TRIGGER_SECONDS``), the file given
by ``--conf`` (see ``conf/local.yaml``), the defaults below.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from decoder.model import PayloadPolicy
from pipeline.config.former_names import with_current_names
from pipeline.config.validation_messages import validation_message
from pipeline.config.work_settings import WorkSettings
from pipeline.errors import UserError
from pipeline.lake.permissions import FileAccess
from pipeline.tables import OFFSET_SNAPSHOTS, OFFSET_TIMELINE, TABLES, Table

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Span = Annotated[timedelta, Field(gt=timedelta(0))]
_MOST_DAYS, _FOR_EVER = 36_500, 10**6
"""Days."""
_OF_TEXTS = frozenset({"string_type", "literal_error"})
"""What pydantic calls errors of settings that are texts."""


def _findings(value: Any) -> Any:
    """The thresholds of all rules with some values; None: they are the defaults."""
    from pipeline.analysis.rules.settings import default_settings, finding_settings_model  # noqa: PLC0415

    given = finding_settings_model().model_validate(value)
    return None if given == default_settings() else given


class WithThresholds:
    """What a schema says of ``findings``."""

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        from pipeline.analysis.rules.settings import finding_settings_model  # noqa: PLC0415

        return finding_settings_model().model_json_schema()


class StreamSettings(BaseModel):
    """The streaming job. Spans of time are seconds, or ISO 8601 (``PT10M``); event time, so that replays agree."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trigger_seconds: Seconds = Field(
        default=10.0, description="A batch starts this often, if there is anything to read"
    )
    gold_trigger_seconds: Seconds | None = Field(
        default=None,
        description="The same of timelines and findings alone; null: as often as all else. A stream spends a third of "
        "its time on them at most, and judges what has just come ahead of that",
    )
    max_files_per_trigger: Count = Field(default=200, description="Landing files that one batch reads at most")
    max_frames_files_per_trigger: Count = Field(
        default=1000, description="Files of bronze.frames that one batch of the second query reads at most"
    )
    manifests_required: bool = Field(
        default=False,
        description="Set landing files aside that have no manifest, which agents write for each. Without one nothing "
        "distinguishes a file of an agent from what somebody else put there, and who deletes a manifest removes the "
        "checks of its file",
    )
    kernel_after_frames: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Number of frames from which a Python worker loads the compiled kernel; frames of 2 MB that are "
        "not zero suffice. null: as soon as that pays, which is from 1,000 frames or 200 KB on where the kernel is "
        "compiled (`make setup`), else from 10,000 frames or 2 MB on",
    )
    local_row_limit: Annotated[int, Field(ge=0)] = Field(
        default=500_000,
        description="Rows that pairing or a derivation takes in the driver's own process, if the lake is on its "
        "machine; more, or those of other lakes, go to Spark's workers in groups. The tables are the same",
    )
    behind_after_seconds: Seconds = Field(
        default=3600.0,
        description="/readyz of `--metrics` answers that the job is behind where a landing file has waited for so long",
    )
    response_timeout: Span = Field(
        default=timedelta(minutes=10),
        description="A request is given up when its own connection continued for longer than this without the answer",
    )
    abandon_timeout: Span = Field(
        default=timedelta(days=1), description="The same, by the traffic of all connections: for those that fell silent"
    )
    lag_lookback: Span = Field(
        default=timedelta(days=7),
        description="How far back the age of an uncommitted record and transaction markers are looked up",
    )
    given_findings: Annotated[Any, PlainValidator(_findings), WithThresholds()] = Field(
        default=None, alias="findings", description="How much of a symptom makes a finding; none: the defaults"
    )

    @property
    def findings(self) -> Any:
        """The thresholds of all rules; the rules are loaded only when somebody asks."""
        from pipeline.analysis.rules.settings import default_settings  # noqa: PLC0415 - loads all rules

        return default_settings() if self.given_findings is None else self.given_findings


class MaintenanceSettings(BaseModel):
    """``wirelake maintain``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_days: dict[str, Annotated[Count, Field(le=_MOST_DAYS)] | None] = Field(
        default_factory=dict,
        description="Days that a table keeps its rows, by name; null: forever; default: as pipeline/tables sets it",
    )
    vacuum_hours: Annotated[int, Field(ge=24, le=24 * _MOST_DAYS)] = Field(
        default=168,
        description="How long files that no table needs stay, for readers that still use them; those of ops a week",
    )

    @field_validator("keep_days")
    @classmethod
    def _fits(cls, value: dict[str, int | None]) -> dict[str, int | None]:
        aged = [name for name, table in TABLES.items() if table.keep_days is not None]
        if unknown := sorted(set(value) - set(aged)):
            raise ValueError(f"{unknown[0]} is no table whose rows have an age; these are: {', '.join(aged)}")
        aging = {name: _days_kept(value, name) for name in aged}
        silver = min(days or _FOR_EVER for name, days in aging.items() if name.startswith("silver."))
        longer = [n for n, days in aging.items() if n.startswith("gold.") and (days or _FOR_EVER) > silver]
        if longer:
            raise ValueError(f"{longer[0]} would be kept longer than silver ({silver} days), which it is derived from")
        return value

    def days_kept(self, table: Table) -> int | None:
        """Days that a table keeps its rows; None: forever."""
        return _days_kept(self.keep_days, table.full_name)


def _days_kept(chosen: Mapping[str, int | None], name: str) -> int | None:
    if name == OFFSET_SNAPSHOTS.full_name and name not in chosen:  # what is no more in the timeline is not known either
        name = OFFSET_TIMELINE.full_name
    return chosen.get(name, TABLES[name].keep_days)


class SqlSettings(BaseModel):
    """``wirelake sql`` and the page: what one query may take before it is ended, with a sentence that explains it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_mb: Annotated[int, Field(ge=64)] = Field(
        default=2048,
        description="MiB for the tables and rows of a query; what DuckDB does not count, e.g. one text of gigabytes, "
        "ends it at a quarter and 256 MiB more. One query must not take the machine's memory from capture and page",
    )
    threads: Count = Field(
        default=4, description="Threads of a query, at most one a core: one query must not take all cores of a server"
    )
    temp_mb: Annotated[int, Field(ge=0)] = Field(
        default=4096,
        description="MiB of temporary files beyond that memory, in a private folder that goes away with the query; 0: "
        "none. A sort without end must not fill the disk that capture writes to",
    )
    command_seconds: Seconds = Field(
        default=3600.0, description="How long a query of the command may take, e.g. a join of a table with itself"
    )
    page_seconds: Seconds = Field(default=30.0, description="Seconds after which a query of the page is stopped")
    page_rows: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1000, description="Rows of an answer that the page shows: a browser holds all of them"
    )
    page_queries: Count = Field(
        default=4,
        description="Queries of visitors that run at once, each with that memory; the next is asked to wait: many "
        "visitors must not take what one may not",
    )


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
    file_access: FileAccess = Field(
        default="private",
        description="Who may read landing zone, lake and checkpoints: private (this user alone) or group (a job or a "
        "page of another user). A capture shows what no other user of the machine should see",
    )
    stream: StreamSettings = StreamSettings()
    maintain: MaintenanceSettings = MaintenanceSettings()
    work: WorkSettings = Field(default=WorkSettings(), description="What reading strangers' bytes may cost the agent")
    sql: SqlSettings = SqlSettings()
    spark: dict[str, str] = Field(
        default_factory=dict,
        description="Spark settings that override the built-in ones",
        json_schema_extra={"additionalProperties": {"type": ["string", "number", "boolean"]}},
    )

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
            return init_settings, lambda: _current(env_settings()), lambda: _current(content)

    try:
        loaded = _Loaded(**{key: value for key, value in overrides.items() if value is not None})
    except ValidationError as error:
        where = str(conf) if conf else "the environment"
        raise UserError("\n".join([f"settings ({where}):", *(f"  {_explain(e)}" for e in error.errors())])) from error
    except SettingsError as error:  # of a section in the environment, which must be JSON
        raise UserError(f"settings (the environment): {error}; a section is JSON there") from None
    return Settings.model_construct(**{name: getattr(loaded, name) for name in Settings.model_fields})


def _current(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of one source under their current names; warns of each former one on standard error, once."""
    current, warnings = with_current_names(settings)
    for warning in warnings:
        _warn(warning)
    return current


@cache
def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)  # noqa: T201 - standard output is the command's


def environment_of(settings: Settings, *sections: str) -> dict[str, str]:
    """Variables by which another process of ours loads these sections as they are here, whatever file they are from.

    Only of sections: none of them holds a secret, and the program's other settings are its own.
    """
    return {f"WIRELAKE_{name.upper()}": getattr(settings, name).model_dump_json() for name in sections}


def _read_yaml(conf: Path) -> dict[str, Any]:
    """The content of a settings file. Errors of Pydantic's own YAML source quote lines, which may hold secrets."""
    try:
        content = yaml.safe_load(conf.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the settings file {conf}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read the settings file {conf}: it is no text in UTF-8") from error
    except yaml.YAMLError as error:
        raise UserError(f"{conf} is not YAML{_place(error)}") from None  # the error quotes the line
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(f"{conf} must hold `name: value` lines; allowed names: {', '.join(Settings.model_fields)}")
    return content


def _place(error: yaml.YAMLError) -> str:
    """Where it stops being YAML, and why, without what is there."""
    mark = getattr(error, "problem_mark", None)
    where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{where}: {getattr(error, 'context', None) or 'it cannot be read'}"


def _allowed(path: tuple[int | str, ...]) -> list[str]:
    """The keys that exist in the section ``path``."""
    model: type[BaseModel] = Settings
    for part in path:
        kind = dict(keys_of(model))[str(part)][1]
        if kind is None:
            return []
        model = kind
    return [name for name, _ in keys_of(model)]


def keys_of(model: type[BaseModel]) -> Iterator[tuple[str, tuple[FieldInfo, type[BaseModel] | None]]]:
    """The keys of a section, each with its field, and the model of what is a section itself."""
    from pipeline.analysis.rules.settings import finding_settings_model  # noqa: PLC0415 - loads all rules

    for name, field in model.model_fields.items():
        kind = finding_settings_model() if field.alias == "findings" else field.annotation
        yield field.alias or name, (field, kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None)


def _explain(error: ErrorDetails) -> str:
    """One sentence: which key, what is wrong, what is allowed."""
    loc = error["loc"]
    key = ".".join(str(part) for part in loc)
    if error["type"] == "extra_forbidden":
        allowed = _allowed(loc[:-1])
        close = difflib.get_close_matches(str(loc[-1]), allowed, 1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        return f"{key}: there is no such key; {hint}allowed: {', '.join(allowed)}"
    message = validation_message(error["msg"])
    if loc[:1] == ("payload_key",):
        return f"payload_key: {message}; put it in quotes"
    given = error["input"]
    # A text may be a secret that is in the wrong place; and a path, since a list or mapping may be one. So may a
    # number where a text belongs: a key of digits alone.
    is_shown = isinstance(given, (bool, int, float)) and error["type"] not in _OF_TEXTS
    hint = "; put it in quotes" if error["type"] == "string_type" and isinstance(given, (bool, int, float)) else ""
    return f"{key}: {message}, not {given!r}" if is_shown else f"{key}: {message}{hint}"
