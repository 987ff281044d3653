"""New files that replace old ones in one step: a crash, a full disk or an interrupt leaves the old file, or none."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A draft of a file, open for writing; it becomes the file at the end, and is removed after an error."""
    path = Path(os.path.realpath(path))  # a link stays a link
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "This is a directory, not a file", str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "This is neither a file nor a place for one", str(path))
    draft = _draft(path)
    try:
        with draft.open("xb") as file:
            if path.exists():  # the new file keeps the permissions of the old one
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    """The name of a new draft of a file; drafts of processes that were killed are removed.

    The name has the file, the computer and the process, so that no draft is removed while it is written.
    """
    prefix = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}.{uuid.getnode():x}"
    for old in path.parent.glob(f"{prefix}.*.tmp"):
        process = old.name.split(".")[-3]
        if process.isdigit() and not _is_running(int(process)):
            old.unlink(missing_ok=True)
    return path.with_name(f"{prefix}.{os.getpid()}.{uuid.uuid4().hex}.tmp")


def _is_running(process: int) -> bool:
    if os.name == "nt":  # os.kill would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True
