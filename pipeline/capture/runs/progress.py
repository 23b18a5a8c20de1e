"""What an agent has read of a ring of capture files: noted beside the landing zone, to continue after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter, ValidationError

from pipeline.capture.landing.stores import LandingError, Store
from pipeline.capture.tcp.state import AgentState

FOLDER = "_agent"
"""Readers of Hive-style directories ignore names that begin with ``_`` or ``.``."""

VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class FileId:
    """A file of a ring; a name that is used again stands for another file.

    Attributes:
        first_ts: capture time of its first packet, µs.
        name: file name without the suffix of a compression.
    """

    first_ts: int
    name: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """How much of a file was read: its packets, and its size (bytes) then; 0 if it was not read to its end."""

    file: FileId
    packets: int
    size: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an agent has come in a ring.

    Attributes:
        directory: the ring's.
        read: the files read that were still there.
        unread: those that were there to be read.
        agent: where it was behind the last packet read.
    """

    directory: str
    read: tuple[ReadFile, ...] = ()
    unread: tuple[FileId, ...] = ()
    agent: AgentState = field(default_factory=AgentState)
    version: int = VERSION


@cache
def _format() -> TypeAdapter[Progress]:
    """Made when it is asked for: that takes 20 ms, and most who import this ask for none."""
    return TypeAdapter(Progress)


def load(store: Store, agent_id: str, directory: str) -> Progress:
    """The progress of an agent; none yet if nothing was written.

    Raises:
        LandingError: it cannot be read, or is of another directory.
    """
    path = _path(agent_id)
    content = store.read(path)
    if content is None:
        return Progress(directory)
    try:
        progress = _format().validate_json(content)
    except ValidationError as error:
        raise LandingError(
            f"{path} in the landing zone is damaged or of another release; {_begin_anew(path)}"
        ) from error
    if progress.version != VERSION:
        raise LandingError(f"{path} in the landing zone is of another release; {_begin_anew(path)}")
    if progress.directory != directory:
        raise LandingError(
            f"agent {agent_id!r} follows {progress.directory}, not {directory}; give this one another --agent-id, or, "
            f"if the directory has moved, {_begin_anew(path)}"
        )
    return progress


def save(store: Store, agent_id: str, progress: Progress) -> None:
    """Replace the progress of an agent, at once. Raises LandingError if it cannot be written."""
    path = _path(agent_id)
    store.write([(path, _format().dump_json(progress))])


def damaged(agent_id: str) -> LandingError:
    """The error that the agent's state does not make sense."""
    path = _path(agent_id)
    return LandingError(f"{path} in the landing zone is damaged; {_begin_anew(path)}")


def _path(agent_id: str) -> str:
    return f"{FOLDER}/{agent_id}.json"


def _begin_anew(path: str) -> str:
    return f"remove {path} to read again all that the ring still holds"
