"""Files written whole or not at all."""

import hashlib
import os
import platform
import re
import secrets
import stat
import time
from contextlib import suppress

import psutil

_BINARY = getattr(os, "O_BINARY", 0)
_HOUR = 3600


def write_atomically(path: str | bytes | os.PathLike[str], data: bytes | memoryview):
    """All of the data under this name, or what was there before."""
    path = os.path.realpath(os.fsdecode(path))  # the file behind a link, not the link
    folder, name = os.path.split(path)
    mode = None  # of the file that is there; only plain files are replaced
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; save needs the name of a file.")
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(
            f"{path} is a device, pipe or socket, which save would replace by a file; give path "
            "the name of a plain file."
        )
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder {folder} does not exist; make it before saving.")
    _remove_orphans(folder, name)
    temporary = os.path.join(folder, f"{_stem(name)}{os.getpid()}-{secrets.token_hex(4)}.tmp")
    # Like the file it replaces from its first byte; a new file as the user's mask leaves it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    descriptor = os.open(temporary, flags, 0o666 if mode is None else mode & 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.chmod(temporary, mode & 0o7777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    with suppress(OSError):  # the rename itself, on the disk; not every system opens folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_output(path: str | bytes | os.PathLike[str], data: bytes | memoryview):
    """The data under this name as `write_atomically` does it; devices and pipes just receive it."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with open(path, "wb") as file:
            file.write(data)
    else:
        write_atomically(path, data)


def _stem(name):
    """How temporary files of this name begin, on this machine: others may share the disk."""
    short = os.fsdecode(os.fsencode(name)[:120])
    return f".{short}.{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"


def _remove_orphans(folder, name):
    """Temporary files that killed saves of this name have left."""
    pattern = re.compile(re.escape(_stem(name)) + r"(\d+)-[0-9a-f]{8}\.tmp")
    for found in os.listdir(folder):
        match = pattern.fullmatch(found)
        path = os.path.join(folder, found)
        with suppress(OSError, OverflowError):  # another save was faster, or it is not ours
            # Silent for an hour, though a process has its writer's number: a later one, then.
            old = match and time.time() - os.stat(path).st_mtime > _HOUR
            if match and (old or not psutil.pid_exists(int(match[1]))):
                os.unlink(path)
