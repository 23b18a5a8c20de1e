"""What landing zone and lake state of each other: manifests, files, frames (see :mod:`pipeline.quality.relations`)."""

from __future__ import annotations

from pipeline.quality.landing_files import MANIFESTS
from pipeline.quality.model import Relation
from pipeline.tables import FRAMES, GAPS, LANDING_FILES, STREAM_PROGRESS

_LANDED = """
    WITH files AS (
        SELECT to_date(regexp_extract(file, 'date=([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})', 1)) AS day, batch_id, checkpoint,
            "rows" AS landed, coalesce(status, 'read') AS status
        FROM ops_landing_files WHERE "query" = 'frames'
    ), batches AS (
        SELECT files.checkpoint, files.batch_id, coalesce(max(rows_in - rows_out), sum(landed)) AS known_before
        FROM files LEFT JOIN ops_stream_progress AS progress ON progress."query" = 'frames'
            AND progress.batch_id = files.batch_id AND progress.checkpoint = files.checkpoint
        WHERE status = 'read' GROUP BY files.checkpoint, files.batch_id
    ), touched AS (
        SELECT DISTINCT day, checkpoint, batch_id FROM files WHERE status = 'read'
    ), doubtful AS (
        SELECT day, sum(known_before) AS doubtful FROM touched JOIN batches USING (checkpoint, batch_id) GROUP BY day
    ), landed AS (
        SELECT day, sum(landed) AS landed FROM files WHERE status IN ('read', 'erased') GROUP BY day
    ), held AS (
        SELECT "date" AS day, count(*) AS held FROM bronze_frames GROUP BY "date"
    ), days AS (
        SELECT day, coalesce(landed, 0) AS landed, coalesce(held, 0) AS held, coalesce(doubtful, 0) AS doubtful
        FROM landed FULL JOIN held USING (day) LEFT JOIN doubtful USING (day)
    )
    SELECT CAST(day AS STRING) AS subject, held AS found,
        CASE WHEN held BETWEEN landed - doubtful AND landed THEN held ELSE landed END AS expected
    FROM days WHERE day >= {since}
"""
"""Rows of a batch that bronze held already (a capture read twice) are known for the batch alone, not for each file:
they are the most that a day may lack of those that have landed."""

_FILE = "regexp_replace(file, '^file:/+', '/')"
_ROWS = f"""
    SELECT concat(stated."query", ' ', stated.place) AS subject, sum(stated."rows") AS expected,
        sum(noted."rows") AS found
    FROM landing_manifests AS stated JOIN (
        SELECT "query", {_FILE} AS file, "rows" FROM ops_landing_files WHERE coalesce(status, 'read') = 'read'
    ) AS noted ON noted."query" = stated."query" AND noted.file = stated.file
    WHERE stated.day >= {{since}} GROUP BY stated."query", stated.place
"""
_NOTED = f"""
    WITH noted AS (
        SELECT DISTINCT "query", {_FILE} AS file FROM ops_landing_files
    ), newest AS (
        SELECT "query", max(unix_micros(modified_at)) AS us FROM ops_landing_files
        WHERE coalesce(status, 'read') = 'read' GROUP BY "query"
    )
    SELECT concat(stated."query", ' ', stated.place) AS subject, 1 AS expected,
        CASE WHEN noted.file IS NULL THEN 0 ELSE 1 END AS found
    FROM landing_manifests AS stated JOIN newest ON newest."query" = stated."query"
        LEFT JOIN noted ON noted."query" = stated."query" AND noted.file = stated.file
    WHERE stated.seen_us < newest.us AND stated.day >= {{since}}
"""
"""The stream reads files by the time at which they came: one that was there before the newest that it read is late."""
_LOST_ARE_GAPS = f"""
    SELECT concat(stated."query", ' ', stated.place) AS subject, 1 AS expected,
        CASE WHEN gaps.connection_id IS NULL THEN 0 ELSE 1 END AS found
    FROM landing_manifests AS stated JOIN (
        SELECT DISTINCT "query", {_FILE} AS file FROM ops_landing_files
        WHERE status IN ('damaged', 'unreadable', 'lost')
    ) AS aside ON aside."query" = stated."query" AND aside.file = stated.file
        LEFT JOIN (SELECT DISTINCT connection_id FROM bronze_gaps) AS gaps
            ON gaps.connection_id = concat('file:', stated.place)
    WHERE stated.day >= {{since}}
"""

LANDING_RELATIONS = (
    Relation(
        "rows_as_manifest",
        LANDING_FILES,
        "critical",
        "of each landing file as many rows were read as its manifest states",
        (LANDING_FILES, MANIFESTS),
        _ROWS,
        rests_on=("manifests",),
    ),
    Relation(
        "manifest_is_noted",
        LANDING_FILES,
        "critical",
        "each published landing file was read, or set aside with the reason why",
        (LANDING_FILES, MANIFESTS),
        _NOTED,
        rests_on=("landing", "manifests"),
    ),
    Relation(
        "set_aside_is_gap",
        GAPS,
        "critical",
        "the rows of each landing file that was set aside or lost are a row of bronze.gaps",
        (LANDING_FILES, GAPS, MANIFESTS),
        _LOST_ARE_GAPS,
        rests_on=("manifests",),
    ),
    Relation(
        "frames_as_landed",
        FRAMES,
        "critical",
        "of each day as many frames as landing files with them were read, less those that came twice or were erased",
        (FRAMES, LANDING_FILES, STREAM_PROGRESS),
        _LANDED,
        rests_on=("landing",),
    ),
)
"""All of them."""
