"""How the pipeline itself is doing."""

from __future__ import annotations

from pipeline.tables.model import OPS_DAYS, Table, optional, required

STREAM_PROGRESS = Table(
    "ops",
    "stream_progress",
    "What each batch of the streaming job did",
    (
        required("query", "string", "Name of the query"),
        required("batch_id", "bigint", "Batch id of its checkpoint"),
        required("checkpoint", "string", "Id of the checkpoint"),
        required("rows_in", "bigint", "Rows read"),
        required("rows_out", "bigint", "Rows written to the main table"),
        required("finished_at", "timestamp", "Wall clock at the end of the batch"),
        optional("started_at", "timestamp", "Wall clock at its begin; null: an older release noted it"),
        optional(
            "newest_ts",
            "timestamp",
            "frames, gaps: time of the newest row that it read, by the clock of the agent; null: it read none",
        ),
    ),
    key=("query", "checkpoint", "batch_id"),
    keep_days=OPS_DAYS,
    aged_by="finished_at",
)

CHANGE_LOG = Table(
    "ops",
    "change_log",
    "Changes to silver, and since when, from which timelines and findings are brought up to date",
    (
        required("about", "string", "What it is about"),
        required("rows", "bigint", "Rows that are new"),
        required("first_ts", "timestamp", "Time of the first of them"),
        required("noted_at", "timestamp", "Wall clock"),
    ),
    key=("noted_at", "about"),
    keep_days=OPS_DAYS,
    aged_by="noted_at",
    former_name="news",
)

LANDING_FILES = Table(
    "ops",
    "landing_files",
    "Which file of the landing zone was read in which batch, and which was not",
    (
        required("query", "string", "Name of the query that read it: frames or gaps"),
        required("file", "string", "URI of the file"),
        required("rows", "bigint", "Rows that were read of it; below 0: that were erased of a day"),
        required("bytes", "bigint", "Size of the file; of a lost one as its manifest states"),
        required("modified_at", "timestamp", "Its modification time; of a lost one the time of its first row"),
        required(
            "batch_id", "bigint", "Batch id of the query's checkpoint; -1: inserted outside of batches as missing"
        ),
        required("checkpoint", "string", "Id of the checkpoint; empty: inserted outside of batches as missing"),
        optional(
            "status",
            "string",
            "read; or why not: lost (deleted before), damaged (not what its manifest states), unreadable (no landing "
            "file), unlisted (without a manifest, where the settings demand one); erased: no file, but what was "
            "erased of a day; null: read, by an older release",
        ),
        optional("reason", "string", "Why it was not read, in words"),
    ),
    key=("query", "checkpoint", "batch_id", "file"),
)

INTERNAL_ERRORS = Table(
    "ops",
    "internal_errors",
    "Steps that failed and were left out: a rule, a table, an exchange, a frame; everything else was judged",
    (
        required("query", "string", "Name of the query or command that ran the step"),
        required("batch_id", "bigint", "Batch id of the query's checkpoint; -1: outside of batches"),
        required("checkpoint", "string", "Id of the checkpoint; empty: outside of batches"),
        required("step", "string", "What failed, for example `rule offset_reset`"),
        required("subject", "string", "What it was about, for example an exchange id; empty: not known"),
        required("error", "string", "Class of the exception; TooMuchToJudge: the step is over its budget"),
        required("place", "string", "Module and line that raised; of TooMuchToJudge what there was too much of"),
        required("noted_at", "timestamp", "Wall clock"),
    ),
    key=("query", "checkpoint", "batch_id", "step", "subject", "error", "place", "noted_at"),
    keep_days=OPS_DAYS,
    aged_by="noted_at",
)

QUALITY_RESULTS = Table(
    "ops",
    "quality_results",
    "One row per expectation and run of `wirelake check`",
    (
        required("run_id", "string", "Id of the run"),
        required("run_time", "timestamp", "When it ran"),
        required("table_name", "string", "Table that was checked"),
        required("name", "string", "Name of the expectation"),
        optional("column_name", "string", "Column, if it is about one"),
        required("severity", "string", "critical or warning"),
        required("success", "boolean", "Whether it held"),
        optional("rows_checked", "bigint", "Rows looked at"),
        optional("rows_failed", "bigint", "Rows that violate it"),
        optional("message", "string", "What was expected and seen; never a sample value"),
        optional("rows_sql", "string", "Query for `wirelake sql` that lists the rows that violate it"),
    ),
    key=("run_id", "table_name", "name", "column_name"),
    keep_days=OPS_DAYS,
    aged_by="run_time",
)

INCIDENT_NOTES = Table(
    "ops",
    "incident_notes",
    "What people noted of incidents on the page: each row is added once and stays",
    (
        required("incident_id", "string", "As in gold.incidents"),
        required("kind", "string", "note, mute, unmute, resolve or reopen"),
        required("noted_at", "timestamp", "Wall clock"),
        optional("text", "string", "What somebody wrote"),
        optional("author", "string", "Who, as they named themselves; null: they did not"),
        optional("muted_until", "timestamp", "mute: until when; null: until somebody ends it"),
    ),
    key=("incident_id", "noted_at", "kind"),
)
