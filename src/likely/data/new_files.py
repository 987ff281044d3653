"""New files that replace old ones in one step: a crash, a full disk or an interrupt leaves the old file, or none.

A draft is locked while it is written, and the system ends the lock with the process: whoever gets the lock of a draft
may remove it, in other containers and on other computers too.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

DRAFT = re.compile(r"\.likely-([0-9a-f]+)-[0-9a-f]{32}\.tmp")
DAY = (
    86_400.0  # seconds; a lock may hold on one computer only, so that drafts of others are removed when they are older
)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A draft of a file, open for writing; it becomes the file at the end, and is removed after an error.

    Drafts in the same directory whose writers were killed are removed.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "This is a directory, not a file", str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "This is neither a file nor a place for one", str(path))
    _remove_abandoned(path.parent)
    draft, file = _new_draft(path.parent)
    try:
        with file:
            if path.exists():  # the new file keeps the permissions of the old one
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":  # under the lock; Windows replaces closed files only
                draft.replace(path)
        if os.name == "nt":
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _new_draft(folder: Path) -> tuple[Path, BinaryIO]:
    """A new draft in a directory, locked where the file system has locks."""
    while True:
        draft = folder / f".likely-{uuid.getnode():x}-{uuid.uuid4().hex}.tmp"
        file = draft.open("xb")
        if _lock(file.fileno()) is not False and draft.exists():
            return draft, file
        file.close()  # another process has removed it before it was locked


def _remove_abandoned(folder: Path) -> None:
    """Remove the drafts in a directory that no process is writing; those that cannot be examined stay."""
    with suppress(OSError), os.scandir(folder) as entries:  # a directory may be written to and not be listed
        found = [(entry, name) for entry in entries if (name := DRAFT.fullmatch(entry.name))]
        for entry, name in found:
            with suppress(OSError):  # it is gone by now, or belongs to another user
                old = time.time() - entry.stat(follow_symlinks=False).st_mtime > DAY
                if entry.is_file(follow_symlinks=False) and (old or name[1] == f"{uuid.getnode():x}"):
                    _remove_unlocked(Path(entry.path))


def _remove_unlocked(draft: Path) -> None:
    """Remove a draft unless a process has locked it; Windows removes no file that is open."""
    if os.name == "nt":
        draft.unlink()
        return
    descriptor = os.open(draft, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if _lock(descriptor):
            draft.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether the lock of an open file is ours now; None if the system or the file system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
