"""Packs what the workers of a cluster need of us: ``python -m pipeline.setup.archive [FOLDER]``.

``wirelake-code.zip``
    our packages with their data, and in ``kernel`` the machine code of the decoder, so that no worker compiles it.
``wirelake-env.tar.gz``
    the Python packages that ours need, without pyspark, which a cluster has. They are those of this environment, so a
    worker needs the same minor version of Python and the same kind of machine. Changes with ``requirements.lock`` only.
    venv-pack and conda-pack take the whole environment, pyspark and tools of development with it.
two jars
    of Delta Lake, from where ``make setup`` put them.

``docs/cluster.md`` describes how a job ships them.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.errors import UserError
from pipeline.setup.jars import DELTA_JARS, JarError, spark_jars_dir, unfit_jars

CODE = "wirelake-code.zip"
ENVIRONMENT = "wirelake-env.tar.gz"
PACKAGES = ("decoder", "pipeline")
KERNEL = "kernel"
"""Folder in the code archive; NUMBA_CACHE_DIR of the workers."""

_ROOT = Path(__file__).parents[2]
_OF_THE_CLUSTER = {"pyspark", "py4j"}


def pack_code(target: Path) -> None:
    """Write our packages and the compiled kernel, compiled now if it never was, into the zip ``target``."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((_ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(_ROOT))
        folder = _compiled_kernel()
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{KERNEL}/{folder.name}/{path.name}")


def _compiled_kernel() -> Path:
    # Imported for what it does: it compiles, or finds compiled, what a worker of the job loads.
    import decoder.kafka.batch  # noqa: PLC0415
    import decoder.mongodb.batch  # noqa: PLC0415
    from decoder.kernel.cache import cache_folder  # noqa: PLC0415

    return cache_folder(decoder.kafka.batch.__package__)


def pack_environment(target: Path) -> None:
    """Write the packages that ours need into the gzipped tar ``target``.

    Raises:
        UserError: one of them is not installed.
    """
    # Level 1: half the time of 6 and hardly larger, as most of it is machine code.
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        for found in runtime_distributions():
            for path, name in _files(found):
                archive.add(path, name, filter=_without_owner)


def runtime_distributions() -> list[Distribution]:
    """The installed distributions that ``wirelake[spark]`` needs, themselves and by others, but for pyspark.

    Raises:
        UserError: one that we name ourselves is not installed.
    """
    found: dict[str, Distribution] = {}
    waiting = list(_requirements(distribution("wirelake"), {"spark"}))
    direct = {name for name, _ in waiting}
    while waiting:
        name, extras = waiting.pop()
        if name in found or name in _OF_THE_CLUSTER:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            if name in direct:
                raise UserError(f"{name} is not installed: make setup") from error
            continue  # needed on another system or by another Python
        waiting.extend(_requirements(found[name], extras))
    return [found[name] for name in sorted(found)]


def _requirements(of: Distribution, extras: set[str]) -> Iterator[tuple[str, set[str]]]:
    """What ``of`` with ``extras`` needs on a machine and a Python like these: names and their extras."""
    for requirement in map(Requirement, of.requires or []):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": one}) for one in extras | {""}):
            yield canonicalize_name(requirement.name), requirement.extras


def _files(of: Distribution) -> Iterator[tuple[Path, str]]:
    """Files below site-packages, with their names there; not commands, and not the packages' own tests."""
    for file in of.files or []:
        path = Path(str(of.locate_file(file)))
        if ".." in file.parts or "tests" in file.parts or not path.is_file():
            continue
        yield path, str(file)
        if path.suffix == ".py":  # as bytecode too, or each executor would compile a thousand modules
            bytecode = Path(cache_from_source(str(path)))
            if bytecode.is_file():
                yield bytecode, str(Path(file).parent / "__pycache__" / bytecode.name)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def copy_jars(folder: Path) -> list[Path]:
    """Copy Delta's jars from Spark's own into ``folder``.

    Raises:
        UserError: they are not there, or not those that are pinned.
    """
    try:
        source = spark_jars_dir()
    except JarError as error:
        raise UserError(str(error)) from error
    if unfit := unfit_jars(source):
        raise UserError(f"{source} lacks {', '.join(jar.file_name for jar in unfit)}: make setup")
    return [Path(shutil.copy(source / jar.file_name, folder)) for jar in DELTA_JARS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill the folder given, by default ``dist``. Returns 0, or 2 with what to do on standard error."""
    given = sys.argv[1:] if arguments is None else arguments
    folder = Path(given[0] if given else "dist")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        pack_code(folder / CODE)
        pack_environment(folder / ENVIRONMENT)
        jars = copy_jars(folder)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for path in (folder / CODE, folder / ENVIRONMENT, *jars):
        sys.stdout.write(f"{path}  {path.stat().st_size / 1e6:.1f} MB\n")
    version = ".".join(map(str, sys.version_info[:2]))
    sys.stdout.write(f"For workers with Python {version}. How to ship it: docs/cluster.md\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
