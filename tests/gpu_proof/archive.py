"""A run as one file to take along, and back again. What is read is as little trusted as a trace."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tb_tidy_plugin.system.files import write_whole
from tests.gpu_proof.state import RESULT

MB = 1_000_000
MOST_BYTES = 200 * MB
MOST_FILES = 5000
MOST_FILE_BYTES = 64 * MB
NAME = "gpu-proof.tar"
LEFT_OUT = "left-out.txt"
NAMES = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/){0,4}[A-Za-z0-9_-][A-Za-z0-9_.-]*")
ENDS = (RESULT, "machine.json", ".log", ".json.gz", ".py", LEFT_OUT)


class ArchiveError(ValueError):
    """An archive that is too large, or holds what no run writes."""


def pack(state: Path, out: Path, most_bytes: int = MOST_BYTES, part_bytes: int | None = None) -> list[Path]:
    """Writes the run as one archive into `out`: results first, then traces, the small ones first.

    What has no room is left out and named in the archive's `left-out.txt`. Where files may only be so large, the
    archive comes in parts (`gpu-proof.tar.00`) of `part_bytes`.
    """
    buffer, left_out = io.BytesIO(), []
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in _in_order(state):
            name = path.relative_to(state).as_posix()
            if path.stat().st_size > min(MOST_FILE_BYTES, most_bytes - buffer.tell() - 4 * tarfile.RECORDSIZE):
                left_out.append(name)
            else:
                tar.add(path, name)
        said = "\n".join(left_out).encode()[: tarfile.RECORDSIZE]
        information = tarfile.TarInfo(LEFT_OUT)
        information.size = len(said)
        tar.addfile(information, io.BytesIO(said))
    content = buffer.getvalue()
    size = len(content) if part_bytes is None else part_bytes
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    names = [NAME] if len(parts) == 1 else [f"{NAME}.{number:02}" for number in range(len(parts))]
    out.mkdir(parents=True, exist_ok=True)
    paths = [write_whole(out / name, part) for name, part in zip(names, parts, strict=True)]
    for old in set(out.glob(f"{NAME}*")).difference(paths):
        old.unlink()
    return paths


def unpack(archive: Path, into: Path) -> None:
    """Unpacks an archive, or one of which this is the first part or the folder of its parts, below `into`.

    Raises:
        ArchiveError: it is not such an archive, too large, or holds something else than files of a run.
        OSError: it cannot be read.
    """
    parts = _parts(archive)
    if sum(part.stat().st_size for part in parts) > MOST_BYTES:
        raise ArchiveError(f"{archive.name} is larger than {MOST_BYTES // MB} MB")
    content = io.BytesIO(b"".join(part.read_bytes() for part in parts))
    try:
        with tarfile.open(fileobj=content, mode="r:") as tar:
            for member in list(_checked(tar)):
                file = tar.extractfile(member)
                path = into / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.read() if file else b"")
    except tarfile.TarError as problem:
        raise ArchiveError(f"{archive.name} is not an archive of a run: {problem}") from None


def _checked(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Plain files of a run, not too many nor too large."""
    size = 0
    for number, member in enumerate(tar):
        size += member.size
        if number >= MOST_FILES or member.size > MOST_FILE_BYTES or size > MOST_BYTES:
            raise ArchiveError(f"{member.name!r} makes the archive larger than a run's")
        if not member.isfile() or not NAMES.fullmatch(member.name) or not member.name.endswith(ENDS):
            raise ArchiveError(f"{member.name!r} is not a file of a run")
        yield member


def _in_order(state: Path) -> Sequence[Path]:
    def order(path: Path) -> tuple[int, int]:
        return (ENDS.index(".json.gz") if path.name.endswith(".json.gz") else 0, path.stat().st_size)

    return sorted(
        (
            path
            for path in state.rglob("*")
            if path.is_file() and path.name.endswith(ENDS) and "site" not in path.relative_to(state).parts[:1]
        ),
        key=order,
    )


def _parts(archive: Path) -> Sequence[Path]:
    if archive.is_dir():
        whole = archive / NAME
        return [whole] if whole.exists() else _parts(archive / f"{NAME}.00")
    if archive.suffix == ".00":
        return sorted(archive.parent.glob(f"{archive.stem}.[0-9][0-9]"))
    return [archive]
