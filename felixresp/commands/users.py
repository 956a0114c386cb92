"""Every user of the server, who a connection is, and what was refused.

The default user is who connects without signing in, while it is enabled and has no
password. While it is not, such a connection is the guest: ``default`` by name,
with no rights at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..config import Settings
from .acl_errors import (
    RULE_UNKNOWN,
    USERS_FILE_UNCHANGED,
    bad_line_rule,
    bad_line_start,
    bad_line_user,
    duplicate_user,
    unmatched_in_line,
)
from .command import Command
from .context import Client
from .refusals import Refusals
from .rights import DEFAULT_USER, User
from .rules import Catalog, RuleError, UnmatchedParenthesis, change_user, joined

_SPACES = b" \t\r\n"
_DEFAULT_RULES = (b"on", b"nopass", b"~*", b"&*", b"+@all")


class BadUsersFile(Exception):
    """An ACL file with mistakes; ``text`` names each of them."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


class Users:
    """``refusals`` is the ACL log."""

    def __init__(self, commands: Mapping[bytes, Command], settings: Settings) -> None:
        self.catalog = Catalog(commands)
        self.refusals = Refusals(settings)
        self.guest = User(DEFAULT_USER)
        self._settings = settings
        self.default = self._new_default()
        self._users = {DEFAULT_USER: self.default}

    def names(self) -> list[bytes]:
        return sorted(self._users)

    def all(self) -> list[User]:
        return [self._users[name] for name in self.names()]

    def get(self, name: bytes) -> User | None:
        return self._users.get(name)

    def newcomer(self) -> User:
        """Who a connection is before it signs in."""
        return self.default if self.default.open else self.guest

    def in_force(self, client: Client) -> User | None:
        """Whose rights the connection has; None where it has to sign in first."""
        user = client.user
        if user is not self.guest:
            return user
        return self.default if self.default.open else None

    def sign_in(self, name: bytes, password: bytes) -> User | None:
        user = self._users.get(name)
        return user if user is not None and user.accepts(password) else None

    def require_password(self) -> None:
        """The setting ``requirepass`` is the default user's only password."""
        draft = self.default.draft()
        self._change(draft, (b"resetpass", self._password_rule()))
        self.default.take(draft)

    def change(self, name: bytes, rules: Sequence[bytes]) -> None:
        """ACL SETUSER: all of the rules or none. Raises RuleError."""
        user = self._users.get(name)
        draft = user.draft() if user is not None else self._new(name)
        self._change(draft, rules)
        if user is None:
            user = self._users[name] = User(name)
        user.take(draft)

    def delete(self, name: bytes) -> User | None:
        return self._users.pop(name, None)

    def dump(self) -> bytes:
        """The ACL file."""
        return b"".join(bytes(user) + b"\n" for user in self.all())

    def load(self, data: bytes, file: bytes) -> list[User]:
        """Take the users of an ACL file, or none of them: raises BadUsersFile.
        Returns the users that are gone.

        A default user whom the file does not name is the one of the settings.
        """
        found = self._parse(data, file)
        found.setdefault(DEFAULT_USER, self._new_default())
        gone = [user for name, user in self._users.items() if name not in found]
        kept: dict[bytes, User] = {}
        for name, draft in found.items():
            kept[name] = self._users.get(name) or User(name)
            kept[name].take(draft)
        self._users = kept
        return gone

    def _parse(self, data: bytes, file: bytes) -> dict[bytes, User]:
        found: dict[bytes, User] = {}
        mistakes: list[bytes] = []
        for number, line in enumerate(data.split(b"\n"), 1):
            words = line.strip(_SPACES).split(b" ")
            if words == [b""]:
                continue
            if words[0] != b"user" or len(words) < 2:
                mistakes.append(bad_line_start(file, number))
                continue
            name = words[1]
            if not is_user_name(name):
                mistakes.append(bad_line_user(file, number, name))
                continue
            if name in found:
                mistakes.append(duplicate_user(name, number))
                continue
            found[name] = self._new(name)
            try:
                self._change(found[name], joined(words[2:]))
            except UnmatchedParenthesis:
                mistakes.append(unmatched_in_line(file, number))
            except RuleError as error:
                rule = error.rule if error.text == RULE_UNKNOWN else None
                mistakes.append(bad_line_rule(file, number, rule, error.text))
        if mistakes:
            raise BadUsersFile(b"".join(mistakes) + USERS_FILE_UNCHANGED)
        return found

    @property
    def _all_channels(self) -> bool:
        return self._settings.acl_pubsub_default == "allchannels"

    def _new(self, name: bytes) -> User:
        return User(name, all_channels=self._all_channels)

    def _new_default(self) -> User:
        user = User(DEFAULT_USER)
        self._change(user, (*_DEFAULT_RULES, self._password_rule()))
        user.take(user)
        return user

    def _password_rule(self) -> bytes:
        password = self._settings.requirepass.encode("utf-8", "surrogateescape")
        return b">" + password if password else b"nopass"

    def _change(self, user: User, rules: Iterable[bytes]) -> None:
        for rule in rules:
            change_user(user, rule, self.catalog, all_channels=self._all_channels)


def is_user_name(name: bytes) -> bool:
    return not any(byte == 0 or bytes((byte,)).isspace() for byte in name)
