"""What can be configured, with which default, and what is allowed?

Order, first wins: command line, environment (``WIRELAKE_LAKE``, ``WIRELAKE_STREAM__TRIGGER_SECONDS``), the file given
by ``--conf`` (see ``conf/local.yaml``), the defaults below.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from decoder.model import PayloadPolicy
from pipeline.capture.tcp.budgets import WorkLimits
from pipeline.errors import UserError
from pipeline.file_access import FileAccess
from pipeline.tables import OFFSET_TIMELINE, OFFSETS_BEFORE, TABLES, Table

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Span = Annotated[timedelta, Field(gt=timedelta(0))]
DecodeThrough = Literal["pandas", "arrow"]
_MOST_DAYS, _FOR_EVER = 36_500, 10**6
"""Days."""


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
    lso_stalled_ratio: Annotated[float, Field(ge=1)] = Field(
        default=3.0, description="Times as long as transactions on that partition usually are open, where that is known"
    )
    transaction_seconds: Seconds = Field(
        default=60.0,
        description="How long a transaction may be open where too few were seen to know how long they usually are "
        "(transaction.timeout.ms)",
    )
    starved_fetches: Count = Field(
        default=3, description="Fetches of a read_committed consumer that stands there meanwhile"
    )
    behind_records: Count = Field(
        default=10,
        description="Records that must wait for stopped, stalled, rewound and partition_dropped_from_commits",
    )
    lag_growing_records: Count = Field(
        default=50, description="Growth of the least lag from the first to the last third of a while"
    )
    lag_growing_work_seconds: Seconds = Field(
        default=2.0, description="The growth is also at least what the group processes in so many seconds"
    )
    lag_growing_seconds: Seconds = Field(
        default=15.0, description="The shortest while in which lag is compared; longer for who commits seldom"
    )
    patience_periods: Annotated[float, Field(ge=1)] = Field(
        default=3.0,
        description="Times as long as the group, partition or member itself usually takes; each span in seconds is the "
        "least of it",
    )
    stopped_seconds: Seconds = Field(default=10.0, description="Silence of a group while records wait")
    stalled_commits: Annotated[int, Field(ge=2)] = Field(default=5, description="Commits of one and the same offset")
    stalled_seconds: Seconds = Field(default=8.0, description="For how long")
    poll_seconds: Seconds = Field(
        default=300.0,
        description="How long a client may process what one poll gave (max.poll.interval.ms), where it is not known "
        "how long it usually takes",
    )
    dropped_commits: Count = Field(
        default=5, description="Commits of other partitions of the topic by the same member without this one"
    )
    dropped_seconds: Seconds = Field(default=6.0, description="For how long")
    episode_pause_seconds: Seconds = Field(
        default=300.0, description="What comes again after a longer pause is counted anew"
    )
    still_open_seconds: Seconds = Field(
        default=60.0, description="What was not seen for so long before the end of the data is closed"
    )
    commit_rejected_times: Count = Field(default=2, description="Refused commits of one client and group")
    commit_rejected_times_rebalancing: Count = Field(
        default=4, description="The same, where all were refused because of a rebalance: some are normal"
    )
    commit_repair_seconds: Seconds = Field(
        default=10.0,
        description="A refused commit is made good if its member, or the partition's owner, has one accepted within so "
        "long; at least three of its own periods",
    )
    zombie_times: Count = Field(default=3, description="Requests of a member that is none any more")
    zombie_seconds: Seconds = Field(default=1.0, description="For how long")
    storm_generations: Annotated[int, Field(ge=2)] = Field(default=5, description="Generations of a group")
    storm_interval_seconds: Seconds = Field(
        default=60.0, description="At most so long from one to the next, on average"
    )
    storm_unexplained: Count = Field(
        default=3,
        description="Generations among them that no deploy explains: instances come again and again, or nobody came or "
        "went",
    )
    storm_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="Or the share of time in which the group stands still for rebalances"
    )
    reset_records: Count = Field(
        default=1, description="Records that a group skips or reads again when its position is reset"
    )
    poison_lives: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Lives of members that begin at the same offset of a partition and end without a commit"
    )
    poison_seconds: Seconds = Field(
        default=10.0, description="For how long; at least twice what usually lies between two commits of the group"
    )
    poll_exceeded_times: Count = Field(
        default=1, description="Times that a client leaves its group in the middle of its work"
    )
    slow_rebalance_seconds: Seconds = Field(
        default=10.0, description="How long a group waits for one member before it has an assignment again"
    )
    slow_rebalance_ratio: Annotated[float, Field(ge=1)] = Field(
        default=3.0, description="Times as long as rebalances of this group usually take, where that is known"
    )
    join_refused_times: Count = Field(default=3, description="Refused joins of one client and group, and none accepted")
    join_refused_seconds: Seconds = Field(
        default=5.0, description="For how long; where a place may become free, at least the member's session timeout"
    )
    produce_refused_times: Count = Field(
        default=1, description="Refused batches of one client and topic that no later attempt carries"
    )
    produce_refused_retries: Count = Field(default=3, description="Refusals, where later attempts carry all of it")
    produce_refused_seconds: Seconds = Field(default=5.0, description="For how long, before an attempt is accepted")
    sequence_gap_times: Count = Field(default=1, description="Batches refused because of their sequence number")
    unknown_topic_times: Count = Field(default=5, description="Requests for a topic that is not there")
    stale_metadata_times: Count = Field(
        default=3, description="Requests refused because of the leader or its epoch, of one client and partition"
    )
    stale_metadata_seconds: Seconds = Field(
        default=1.0, description="For how long they do not agree on the leader: when it changes, requests are under way"
    )
    in_vain_seconds: Seconds = Field(
        default=30.0,
        description="How long a client asks in vain, for a topic or of a broker that does not lead, until it is a "
        "warning: until then topics are made and metadata spread",
    )
    refused_again_times: Count = Field(
        default=3, description="Refusals without a success between them that make a refused client more than a probe"
    )
    churn_sessions: Count = Field(default=10, description="Fetch sessions that one client opens")
    churn_share: Annotated[float, Field(gt=0, le=1)] = Field(default=0.5, description="Their share of its fetches")
    costly_sessions: Count = Field(default=300, description="So many of them are a warning")
    slow_seconds: Seconds = Field(default=1.0, description="Latency of an answer that does not wait by design")
    slow_answers: Count = Field(default=3, description="Slow answers of one broker")
    slow_ratio: Annotated[float, Field(ge=1)] = Field(
        default=20.0, description="Times the usual 95th percentile that the slowest must take"
    )
    slow_samples: Count = Field(
        default=20, description="Answers of an api and broker from which its usual latency follows"
    )
    throttled_times: Count = Field(default=3, description="Answers with a throttle time, of one client")
    throttled_seconds: Seconds = Field(default=1.0, description="Their sum")
    auth_failed_times: Count = Field(default=1, description="Refused logins or operations")
    unsupported_version_times: Count = Field(default=1, description="Requests in a version that the broker refuses")
    acks0_requests: Count = Field(default=1, description="Produce requests that ask for no answer")
    unanswered_times: Count = Field(default=3, description="Requests of one client that a broker left unanswered")
    tiny_batches: Count = Field(default=300, description="Batches of one client and partition within ten seconds")
    tiny_records: Annotated[float, Field(ge=1)] = Field(default=1.5, description="At most so many records in each")
    mongo_slow_seconds: Seconds = Field(
        default=0.5, description="Latency of a MongoDB command that does not wait by design"
    )
    mongo_slow_commands: Count = Field(default=3, description="Slow ones of one command and namespace")
    mongo_failures: Count = Field(default=3, description="Failures of one command and namespace")
    mongo_retries: Count = Field(default=5, description="Writes of one command and namespace that were repeated")
    mongo_retry_interval_seconds: Seconds = Field(
        default=10.0, description="At most so long from one to the next, on average"
    )
    mongo_open_cursors: Count = Field(default=10, description="Cursors that one application leaves open")
    mongo_cursor_idle_seconds: Seconds = Field(default=30.0, description="Without a use of them for so long")
    unavailable_refusals: Count = Field(
        default=5, description="Refusals of a partition or coordinator without a success between"
    )
    unavailable_seconds: Seconds = Field(
        default=10.0,
        description="For how long; at least three times the usual time between two successes, where that is known",
    )
    share_deliveries: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Deliveries of one record to members of a share group (KIP-932)"
    )
    duplicate_write_seconds: Seconds = Field(
        default=0.5, description="From a batch without an answer to the same batch on another connection, at least"
    )
    hanging_seconds: Seconds = Field(
        default=30.0, description="How long a transaction is open, and nothing was seen of it, at least"
    )
    hanging_ratio: Annotated[float, Field(ge=1)] = Field(
        default=5.0, description="Times as long as the longest that its client, or others there, took to commit"
    )
    churn_connections: Annotated[int, Field(ge=2)] = Field(
        default=30, description="Connections that one client opens within a minute"
    )
    churn_work: Annotated[float, Field(ge=0)] = Field(
        default=3.0, description="At most so many requests beside the handshake on each (median)"
    )
    churn_checks: Annotated[int, Field(ge=3)] = Field(
        default=5, description="Connections in a steady rhythm without any work that are a health check"
    )
    stream_losses: Count = Field(
        default=1, description="Errors after which a change stream of one application cannot go on"
    )
    lookback: Annotated[timedelta, Field(ge=timedelta(hours=1))] = Field(
        default=timedelta(days=1), description="How far before the hour of the first news rules look, at least an hour"
    )
    max_evidence: Count = Field(default=20, description="Exchange ids kept with a finding")


class StreamSettings(BaseModel):
    """The streaming job. Spans of time are seconds, or ISO 8601 (``PT10M``); event time, so that replays agree."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trigger_seconds: Seconds = Field(
        default=10.0, description="A batch starts this often, if there is anything to read"
    )
    gold_trigger_seconds: Seconds | None = Field(
        default=None, description="The same of timelines and findings alone; null: as often as all else"
    )
    max_files_per_trigger: Count = Field(default=200, description="Landing files that one batch reads at most")
    max_frames_files_per_trigger: Count = Field(
        default=1000, description="Files of bronze.frames that one batch of the second query reads at most"
    )
    manifests_required: bool = Field(
        default=False,
        description="Set landing files aside that have no manifest. Without one nothing distinguishes a file of an "
        "agent from what somebody else put there; agents of older releases wrote none",
    )
    kernel_after_frames: Annotated[int, Field(ge=0)] = Field(
        default=20_000,
        description="Frames that a Python worker reads plainly before it loads the kernel, which takes seconds",
    )
    rows_in_one_process: Annotated[int, Field(ge=0)] = Field(
        default=500_000,
        description="Rows that pairing or a derivation takes in the driver's own process, if the lake is on its "
        "machine; more, or those of other lakes, go to Spark's workers in groups. The tables are the same",
    )
    decode_through: DecodeThrough = Field(
        default="pandas",
        description="How Spark hands frames to the decoder: pandas (mapInPandas) or arrow (mapInArrow), which takes "
        "less CPU time; the rows are the same",
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


class MaintenanceSettings(BaseModel):
    """``wirelake maintain``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_days: dict[str, Annotated[Count, Field(le=_MOST_DAYS)] | None] = Field(
        default_factory=dict,
        description="Days that a table keeps its rows, by name; null: for ever; default: as pipeline/tables sets it",
    )
    vacuum_hours: Annotated[int, Field(ge=24)] = Field(
        default=168, description="Files that no table needs any more stay so long, for readers that still look at them"
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
        """Days that a table keeps its rows; None: for ever."""
        return _days_kept(self.keep_days, table.full_name)


def _days_kept(chosen: Mapping[str, int | None], name: str) -> int | None:
    if name == OFFSETS_BEFORE.full_name and name not in chosen:  # what is no more in the timeline is not known either
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
    page_seconds: Seconds = Field(
        default=30.0, description="The same of the page, where each query is one of a visitor"
    )
    page_rows: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1000, description="Rows of an answer that the page shows: a browser holds all of them"
    )
    page_queries: Count = Field(
        default=4,
        description="Queries of visitors that run at once, each with that memory; the next is told to wait: many "
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
        "page of another user). A capture shows what nobody else on the machine should see",
    )
    stream: StreamSettings = StreamSettings()
    maintain: MaintenanceSettings = MaintenanceSettings()
    work: WorkLimits = Field(default=WorkLimits(), description="What reading the bytes of strangers may cost the agent")
    sql: SqlSettings = SqlSettings()
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
    except SettingsError as error:  # of a section in the environment, which must be JSON
        raise UserError(f"settings (the environment): {error}; a section is JSON there") from None
    return Settings.model_construct(**{name: getattr(loaded, name) for name in Settings.model_fields})


def _read_yaml(conf: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(conf.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the settings file {conf}: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{conf} is not YAML{_place(error)}") from None  # the error quotes the line
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(f"{conf} must hold `name: value` lines; allowed names: {', '.join(Settings.model_fields)}")
    return content


def _place(error: yaml.YAMLError) -> str:
    """Where it stops being YAML, and why, without what stands there."""
    mark = getattr(error, "problem_mark", None)
    where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{where}: {getattr(error, 'context', None) or 'it cannot be read'}"


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
    if loc[:1] == ("payload_key",):
        return f"payload_key: {message}; put it in quotes"
    given = error["input"]
    # A text may be a secret that stands in the wrong place; and a path, since a list or mapping may be one.
    return f"{key}: {message}, not {given!r}" if isinstance(given, (bool, int, float)) else f"{key}: {message}"
