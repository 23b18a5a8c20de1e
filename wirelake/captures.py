"""``wirelake.diagnose``: captures in, findings and tables out, in this process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from pipeline.capture.runs.summary import nothing_found
from pipeline.capture.runs.summary import warnings as warnings_of
from pipeline.commands.unjudged import error_sentences, why_nothing_was_judged
from pipeline.config.settings import load_settings
from pipeline.embedded.diagnosis import Diagnosis
from pipeline.embedded.diagnosis import diagnose as diagnose_landed
from pipeline.embedded.inputs import Inputs, open_inputs
from pipeline.errors import UserError

_CALLER = 4
"""Where a warning points to, counted from here: beyond `diagnose`, and what :mod:`wirelake.loading` puts around it."""


class IncompleteWarning(UserWarning):
    """Warns of what a capture lacks, or of what was not read or judged; each in a sentence."""


def diagnose(
    *captures: str | os.PathLike[str],
    lake: str | os.PathLike[str] | None = None,
    conf: str | os.PathLike[str] | None = None,
    tls_keylog: str | os.PathLike[str] | None = None,
) -> Diagnosis:
    """Diagnose captures, or a landing zone, as ``wirelake diagnose`` does. Needs no Java.

    All tables are in memory: some 9 kB for each request and each response.

    >>> import wirelake
    >>> found = wirelake.diagnose("tests/captures/stuck_commit.pcap")
    >>> [(row["severity"], row["rule"]) for row in found.incidents.to_pylist()]
    [('critical', 'stuck_commit')]
    >>> found.tables["silver.exchanges"].num_rows, found.looked.bytes_lost
    (1330, 0)

    Args:
        captures: files (pcap or pcapng, also .gz or .zst), folders of them, or one landing zone.
        lake: folder in which all tables are left as Delta tables, for `query` and the charts; a lake of an earlier
            diagnosis there is replaced. Needs the extra ``sql``. None: they are in memory alone.
        conf: settings file; None: the defaults, and what the environment sets.
        tls_keylog: file with the keys of TLS connections, as ``SSLKEYLOGFILE`` names it; needs tshark.

    Returns:
        ``incidents`` and ``findings`` as tables of Arrow; ``tables``, all tables by their full name; ``looked``, how
        much was judged; ``errors``, steps that failed and cost only themselves.

    Raises:
        UserError: a file cannot be read, there is nothing to judge, or the lake cannot be written.

    Warns:
        IncompleteWarning: packets are missing, files were left out, or a step failed.
    """
    if not captures:
        raise UserError("name at least one capture, folder of captures or landing zone")
    settings = load_settings(None if conf is None else Path(conf))
    if lake is not None:
        from pipeline.embedded.lake import refuse_lake  # noqa: PLC0415 - loads deltalake

        refuse_lake(Path(lake))
    keys = None if tls_keylog is None else os.fspath(tls_keylog)
    paths = [os.fspath(one) for one in captures]
    with open_inputs(paths, allow_truncated=None, tls_keylog=keys, work=settings.work.limits()) as inputs:
        _warn_of(_lacking(inputs))
        found = diagnose_landed(inputs.landed(), settings.stream)
    if not inputs.rows and not found.findings.num_rows:
        raise UserError(nothing_found(inputs.stats))
    unjudged = why_nothing_was_judged(found.looked, inputs.stats, has_findings=bool(found.findings.num_rows))
    _warn_of([*error_sentences(found.errors), *([unjudged] if unjudged is not None else [])])
    if lake is not None:
        from pipeline.embedded.lake import write_lake  # noqa: PLC0415

        write_lake(Path(lake), found.tables)
    return found


def _lacking(inputs: Inputs) -> list[str]:
    """What of the captures was not read, in sentences."""
    stats = inputs.stats
    return [*([inputs.cut] if inputs.cut else []), *(warnings_of(stats) if stats else []), *inputs.set_aside]


def _warn_of(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, IncompleteWarning, stacklevel=_CALLER)
