"""The ACL file: read when the server starts and at ACL LOAD, written at ACL SAVE.

It is replaced in one piece and durable before ACL SAVE answers. Names without a
leading slash are in the data directory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..commands.table import COMMANDS
from ..commands.users import BadUsersFile, Users
from ..config import Settings
from ..storage.disk import Disk

_NEW = ".new"
_MODE = 0o600  # of a file that is not there yet


class UsersFileError(Exception):
    """The server cannot start with this ACL file; the text says why."""


class UsersFile:
    def __init__(self, settings: Settings) -> None:
        self._path = Path(settings.dir, settings.aclfile)
        self._disk = Disk()

    def read(self) -> bytes:
        return self._path.read_bytes()

    def write(self, data: bytes) -> None:
        path, disk = self._path.resolve(), self._disk
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _MODE
        new = path.with_name(path.name + _NEW)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            os.fchmod(file, mode)
            disk.write(file, data, 0)
            os.fsync(file)
        finally:
            os.close(file)
        disk.rename(new, path)
        disk.sync_directory(path.parent)


def open_users(settings: Settings) -> tuple[Users, UsersFile]:
    """The users that a server starts with. Raises UsersFileError."""
    users, file = Users(COMMANDS, settings), UsersFile(settings)
    if settings.aclfile:
        try:
            users.load(file.read(), os.fsencode(settings.aclfile))
        except OSError as error:
            reason = error.strerror or str(error)
            msg = f"cannot read the ACL file {settings.aclfile}: {reason}"
            raise UsersFileError(msg) from None
        except BadUsersFile as error:
            text = os.fsdecode(error.text)
            msg = f"cannot use the ACL file {settings.aclfile}: {text}"
            raise UsersFileError(msg) from None
    return users, file
