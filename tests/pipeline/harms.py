"""What may happen to a table of a lake: its files or its log are cut off, garbled or gone, or something is in place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def _files(table: Path) -> list[Path]:
    return sorted(table.rglob("*.parquet"))


def cut_files(table: Path) -> None:
    for file in _files(table):
        os.truncate(file, file.stat().st_size // 2)


def empty_files(table: Path) -> None:
    for file in _files(table):
        os.truncate(file, 0)


def garble_files(table: Path) -> None:
    for file in _files(table):
        file.write_bytes(b"\0" * file.stat().st_size)


def lose_files(table: Path) -> None:
    for file in _files(table):
        file.unlink()


def cut_log(table: Path) -> None:
    log = sorted((table / "_delta_log").glob("*.json"))[-1]
    os.truncate(log, log.stat().st_size // 2)


def garble_log(table: Path) -> None:
    sorted((table / "_delta_log").glob("*.json"))[-1].write_bytes(b"\xff\xfe not json")


def lose_log(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")


def empty_log(table: Path) -> None:
    for entry in (table / "_delta_log").iterdir():
        entry.unlink()


def be_a_file(table: Path) -> None:
    shutil.rmtree(table)
    table.write_text("no folder")


def be_a_link(table: Path) -> None:
    moved = table.with_name("elsewhere")
    table.rename(moved)
    table.symlink_to(moved)


HARMS = (
    cut_files, empty_files, garble_files, lose_files, cut_log, garble_log, lose_log, empty_log, be_a_file,
    be_a_link,
)  # fmt: skip
