"""Error texts of users and rights, worded as Redis words them.

A rule's error is shown behind the rule; those of an ACL file are put in one line.
"""

from __future__ import annotations

from .errors import CommandError, printed, shown

NO_KEY_RIGHT = b"NOPERM No permissions to access a key"
NO_GROUP_RIGHT = b"NOPERM No permissions to access a group"
DEFAULT_USER_STAYS = b"ERR The 'default' user cannot be removed"
BAD_USER_NAME = b"ERR Usernames can't contain spaces or null characters"
BAD_PASSWORD_BITS = (
    b"ERR ACL GENPASS argument must be the number of bits for the output password, a "
    b"positive number up to 4096"
)
NO_USERS_FILE = (
    b"ERR This Redis instance is not configured to use an ACL file. You may want to "
    b"specify users via the ACL SETUSER command and then issue a CONFIG REWRITE "
    b"(assuming you have a Redis configuration file set) in order to store users in "
    b"the Redis configuration."
)
USERS_NOT_SAVED = (
    b"ERR There was an error trying to save the ACLs. Please check the server logs for "
    b"more information"
)
USERS_FILE_UNCHANGED = (
    b"WARNING: ACL errors detected, no change to the previously active ACL rules was "
    b"performed"
)
RULE_SYNTAX = b"Syntax error"
RULE_UNKNOWN = b"Unknown command or category name in ACL"
RULE_OF_A_SUBCOMMAND = b"Allowing first-arg of a subcommand is not supported"
RULE_BAD_HASH = (
    b"The password hash must be exactly 64 characters and contain only lowercase "
    b"hexadecimal characters"
)
RULE_NO_PASSWORD = b"The password you are trying to remove from the user does not exist"
RULE_AFTER_ALL_KEYS = (
    b"Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and "
    b"does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
)
RULE_AFTER_ALL_CHANNELS = (
    b"Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid "
    b"and does not have any effect. Try 'resetchannels' to start with an empty list of "
    b"channels"
)
RULE_BAD_GROUP = b"A group rule is group:<key pattern>/<group pattern>"


def no_command_right(user: bytes, command: bytes) -> CommandError:
    return CommandError(
        b"NOPERM User %b has no permissions to run the '%b' command"
        % (printed(user), command)
    )


def rights_changed(reason: bytes) -> bytes:
    """EXEC runs into a command that the user may not run any more."""
    return (
        b"NOPERM ACLs rules changed between the moment the transaction was accumulated "
        b"and the EXEC call. This command is no longer allowed for the following "
        b"reason: %b" % reason
    )


def bad_rule(rule: bytes, text: bytes) -> CommandError:
    return CommandError(
        b"ERR Error in ACL SETUSER modifier '%b': %b" % (printed(rule), text)
    )


def unmatched_parenthesis(start: bytes) -> CommandError:
    return CommandError(
        b"ERR Unmatched parenthesis in acl selector starting at '%b'." % printed(start)
    )


def unknown_category(word: bytes) -> CommandError:
    return CommandError(b"ERR Unknown category '%b'" % printed(word))


def user_not_found(name: bytes) -> CommandError:
    return CommandError(b"ERR User '%b' not found" % printed(name))


def command_not_found(name: bytes) -> CommandError:
    return CommandError(b"ERR Command '%b' not found" % printed(name))


def unreadable_users_file(file: bytes, reason: bytes) -> CommandError:
    return CommandError(
        b"ERR Error loading ACLs, opening file '%b': %b" % (file, reason)
    )


def bad_line_start(file: bytes, number: int) -> bytes:
    """What is wrong with a line of the ACL file; one text is put behind the other."""
    return b"%b:%d should start with user keyword followed by the username. " % (
        file,
        number,
    )


def bad_line_user(file: bytes, number: int, name: bytes) -> bytes:
    return b"%b:%d: the username '%b' contains spaces or null characters. " % (
        file,
        number,
        shown(name),
    )


def duplicate_user(name: bytes, number: int) -> bytes:
    return b"WARNING: Duplicate user '%b' found on line %d. " % (shown(name), number)


def unmatched_in_line(file: bytes, number: int) -> bytes:
    return b"%b:%d: Unmatched parenthesis in selector definition." % (file, number)


def bad_line_rule(file: bytes, number: int, rule: bytes | None, text: bytes) -> bytes:
    """``rule`` is named where it is the name in it that is unknown."""
    if rule is not None:
        text = b"Error in applying operation '%b': %b" % (shown(rule), text)
    return b"%b:%d: %b. " % (file, number, text)
