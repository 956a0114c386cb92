"""Error replies, worded exactly as Redis words them; every text stands here.

A name is the text itself where it never varies, and a function where it does.
The first word of a text is the error code.
"""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN_MAX = 128  # of a client's own bytes in an error reply


class CommandError(Exception):
    """Ends a command with an error reply."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


# Any command
SYNTAX = b"ERR syntax error"
NOT_AN_INTEGER = b"ERR value is not an integer or out of range"
NO_SUCH_KEY = b"ERR no such key"
WRONG_TYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"
NO_AUTH = b"NOAUTH Authentication required."
NO_SPACE = (
    b"MISCONF No space is left for writes. Commands that add data are refused; "
    b"XACK, XDEL, XTRIM and reads go on. See the server's log."
)
NOT_IN_MULTI = b"ERR Command not allowed inside a transaction"

# Connection
NO_PROTOCOL = b"NOPROTO unsupported protocol version"
PROTOCOL_NOT_AN_INTEGER = b"ERR Protocol version is not an integer or out of range"
HELLO_NO_AUTH = (
    b"NOAUTH HELLO must be called with the client already authenticated, otherwise "
    b"the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
    b"client and select the RESP protocol version at the same time"
)
WRONG_PASSWORD = b"WRONGPASS invalid username-password pair or user is disabled."
NO_PASSWORD_SET = (
    b"ERR AUTH <password> called without any password configured for the default "
    b"user. Are you sure your configuration is correct?"
)
BAD_CLIENT_NAME = (
    b"ERR Client names cannot contain spaces, newlines or special characters."
)
DB_OUT_OF_RANGE = b"ERR DB index is out of range"
DB_NOT_A_C_INT = (
    b"ERR value is out of range, value must between -2147483648 and 2147483647"
)
BAD_CLIENT_ID = b"ERR Invalid client ID"
BAD_UNBLOCK_REASON = b"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"
NO_SUCH_CLIENT = b"ERR No such client"
KILL_ID_NOT_POSITIVE = b"ERR client-id should be greater than 0"
MAXAGE_NOT_AN_INTEGER = b"ERR maxage is not an integer or out of range"
MAXAGE_NOT_POSITIVE = b"ERR maxage should be greater than 0"

# Transactions
MULTI_NESTED = b"ERR MULTI calls can not be nested"
EXEC_WITHOUT_MULTI = b"ERR EXEC without MULTI"
DISCARD_WITHOUT_MULTI = b"ERR DISCARD without MULTI"
WATCH_IN_MULTI = b"ERR WATCH inside MULTI is not allowed"
EXEC_ABORT = b"EXECABORT Transaction discarded because of previous errors."
MULTI_TOO_LARGE = b"ERR transaction exceeds client-query-buffer-limit"
MONITOR_IN_MULTI = b"ERR MONITOR isn't allowed for DENY BLOCKING client"

# Keys and strings
INVALID_CURSOR = b"ERR invalid cursor"
EXPIRE_NX_WITH_OTHERS = (
    b"ERR NX and XX, GT or LT options at the same time are not compatible"
)
EXPIRE_GT_WITH_LT = b"ERR GT and LT options at the same time are not compatible"

# Server
CLUSTER_DISABLED = b"ERR This instance has cluster support disabled"
NOT_LFU = (
    b"ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
    b"Please note that when switching between policies at runtime LRU and LFU data "
    b"will take some time to adjust."
)
BAD_SLOWLOG_COUNT = b"ERR count should be greater than or equal to -1"
INVALID_COMMAND = b"ERR Invalid command specified"
INVALID_ARGUMENT_COUNT = b"ERR Invalid number of arguments specified for command"
NO_KEY_ARGUMENTS = b"ERR The command has no key arguments"
INVALID_ARGUMENTS = b"ERR Invalid arguments specified for command"
NO_SHUTDOWN = b"ERR No shutdown in progress."

# Streams: any ID, ranges
INVALID_ID = b"ERR Invalid stream ID specified as stream command argument"
INVALID_START = b"ERR invalid start ID for the interval"
INVALID_END = b"ERR invalid end ID for the interval"

# XADD, XTRIM
ID_ZERO = b"ERR The ID specified in XADD must be greater than 0-0"
ID_TOO_SMALL = (
    b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
)
EXHAUSTED = (
    b"ERR The stream has exhausted the last possible ID, unable to add more items"
)
TOO_LARGE = b"ERR Elements are too large to be stored"
MAXLEN_WITH_MINID = (
    b"ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
)
MAXLEN_NEGATIVE = b"ERR The MAXLEN argument must be >= 0."
LIMIT_NEGATIVE = b"ERR The LIMIT argument must be >= 0."
LIMIT_WITHOUT_STRATEGY = (
    b"ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
)
LIMIT_WITHOUT_APPROXIMATE = (
    b"ERR syntax error, LIMIT cannot be used without the special ~ option"
)
XTRIM_WITHOUT_STRATEGY = (
    b"ERR syntax error, XTRIM must be called with a trimming strategy"
)

# XREAD, XREADGROUP
UNBALANCED_XREAD = (
    b"ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' "
    b"must be specified."
)
UNBALANCED_XREADGROUP = (
    b"ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' "
    b"must be specified."
)
MISSING_GROUP = b"ERR Missing GROUP option for XREADGROUP"
NEW_ID_OUTSIDE_GROUP = (
    b"ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
    b"<group> <consumer> option."
)
TIMEOUT_NOT_AN_INTEGER = b"ERR timeout is not an integer or out of range"
TIMEOUT_NEGATIVE = b"ERR timeout is negative"
TIMEOUT_OUT_OF_RANGE = b"ERR timeout is out of range"
UNBLOCKED = b"UNBLOCKED client unblocked via CLIENT UNBLOCK"

# XGROUP, XSETID
XGROUP_NO_KEY = (
    b"ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you "
    b"may want to use the MKSTREAM option to create an empty stream automatically."
)
BUSY_GROUP = b"BUSYGROUP Consumer Group name already exists"
BAD_ENTRIES_READ = b"ERR value for ENTRIESREAD must be positive or -1"
XSETID_BELOW_DELETED = (
    b"ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
)
XSETID_BELOW_TOP = (
    b"ERR The ID specified in XSETID is smaller than the target stream top item"
)
XSETID_BELOW_GIVEN_DELETED = (
    b"ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
)
ENTRIES_ADDED_NEGATIVE = b"ERR entries_added must be positive"
ENTRIES_ADDED_TOO_SMALL = (
    b"ERR The entries_added specified in XSETID is smaller than the target stream "
    b"length"
)

# XCLAIM, XAUTOCLAIM
COUNT_NOT_POSITIVE = b"ERR COUNT must be > 0"
COUNT_TOO_HIGH = (
    b"ERR Insufficient memory, failed allocating transient memory, COUNT too high."
)


def shown(word: bytes) -> bytes:
    """A client's word as an error may repeat it."""
    return printed(word)[:_SHOWN_MAX]


def printed(word: bytes) -> bytes:
    """As far as Redis prints it: up to a NUL."""
    return word.partition(b"\0")[0]


def unknown_command(request: Sequence[bytes]) -> CommandError:
    args = b""
    for word in request[1:]:
        if len(args) >= _SHOWN_MAX:
            break
        args += b"'%b' " % word[: _SHOWN_MAX - len(args)]
    return CommandError(
        b"ERR unknown command '%b', with args beginning with: %b"
        % (shown(request[0]), args)
    )


def unknown_subcommand(command: bytes, word: bytes) -> CommandError:
    return CommandError(
        b"ERR unknown subcommand '%b'. Try %b HELP." % (shown(word), command.upper())
    )


def bad_subcommand(command: bytes, word: bytes) -> CommandError:
    """For an option or an argument count that a known subcommand does not take."""
    return CommandError(
        b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP."
        % (shown(word), command.upper())
    )


def wrong_arity(name: bytes) -> CommandError:
    """``name`` is ``xack``, or ``xgroup|create``."""
    return CommandError(b"ERR wrong number of arguments for '%b' command" % name)


def exec_abort(reason: bytes) -> CommandError:
    reason = reason.removeprefix(b"ERR ")
    return CommandError(b"EXECABORT Transaction discarded because of: %b" % reason)


def bad_hello_option(word: bytes) -> CommandError:
    return CommandError(b"ERR Syntax error in HELLO option '%b'" % shown(word))


def bad_client_info(option: bytes) -> CommandError:
    return CommandError(
        b"ERR %b cannot contain spaces, newlines or special characters." % option
    )


def unrecognized_option(word: bytes) -> CommandError:
    return CommandError(b"ERR Unrecognized option '%b'" % shown(word))


def unknown_client_type(word: bytes) -> CommandError:
    return CommandError(b"ERR Unknown client type '%b'" % shown(word))


def no_such_user(word: bytes) -> CommandError:
    return CommandError(b"ERR No such user '%b'" % shown(word))


def invalid_expire(command: bytes) -> CommandError:
    return CommandError(b"ERR invalid expire time in '%b' command" % command)


def unsupported_option(word: bytes) -> CommandError:
    return CommandError(b"ERR Unsupported option %b" % shown(word))


def config_unknown(name: bytes) -> CommandError:
    return CommandError(
        b"ERR Unknown option or number of arguments for CONFIG SET - '%b'" % shown(name)
    )


def config_failed(name: bytes, reason: bytes) -> CommandError:
    return CommandError(
        b"ERR CONFIG SET failed (possibly related to argument '%b') - %b"
        % (shown(name), reason)
    )


def only_xreadgroup(option: bytes) -> CommandError:
    """GROUP, NOACK or CLAIM in an XREAD."""
    return CommandError(
        b"ERR The %b option is only supported by XREADGROUP. You called XREAD instead."
        % option
    )


def meaningless_id(id_: bytes) -> CommandError:
    """``$`` or ``+`` in an XREADGROUP."""
    return CommandError(
        b"ERR The %b ID is meaningless in the context of XREADGROUP: you want to read "
        b"the history of this consumer by specifying a proper ID, or use the > ID to "
        b"get new messages. The %b ID would just return an empty result set."
        % (id_, id_)
    )


def no_group(key: bytes, group: bytes) -> CommandError:
    """XPENDING, XCLAIM, XAUTOCLAIM, XDLQ, XNACK, XEXTEND, XPOLL, XEXPLAIN."""
    return CommandError(
        b"NOGROUP No such key '%b' or consumer group '%b'"
        % (printed(key), printed(group))
    )


def no_group_to_read(key: bytes, group: bytes) -> CommandError:
    return CommandError(
        b"NOGROUP No such key '%b' or consumer group '%b' in XREADGROUP with GROUP "
        b"option" % (printed(key), printed(group))
    )


def no_group_for_key(key: bytes, group: bytes) -> CommandError:
    """XGROUP's subcommands and XINFO CONSUMERS."""
    return CommandError(
        b"NOGROUP No such consumer group '%b' for key name '%b'"
        % (printed(group), printed(key))
    )


def bad_min_idle(command: bytes) -> bytes:
    return b"ERR Invalid min-idle-time argument for %b" % command


def bad_xclaim_option(word: bytes) -> CommandError:
    return CommandError(b"ERR Unrecognized XCLAIM option '%b'" % shown(word))


def bad_xclaim_value(option: bytes) -> bytes:
    """``option`` is IDLE, TIME or RETRYCOUNT."""
    return b"ERR Invalid %b option argument for XCLAIM" % option


# XPOLL, XNACK, XEXTEND, XGROUP SEEK and CONFIG
NOT_LEASED = (
    b"ERR The group is in mode redis, which has no such command: XGROUP CONFIG SET key "
    b"group mode lease"
)
NAME_LENGTH = b"ERR Group and consumer names must have 1 to 128 bytes"
VISIBILITY_NOT_POSITIVE = b"ERR VISIBILITY must be > 0"
BAD_NACK_MODE = b"ERR mode must be SILENT, FAIL, or FATAL"
NUMIDS_NOT_POSITIVE = b"ERR numids must be a positive integer"
NUMIDS_MISMATCH = b"ERR number of IDs doesn't match numids"
IDS_EXPECTED = b"ERR syntax error, expected IDS keyword"
BAD_RETRY_COUNT = b"ERR Invalid RETRYCOUNT value, must be >= 0"
DELAY_NEGATIVE = b"ERR DELAY must be >= 0"
DELAY_WITH_FATAL = b"ERR DELAY goes with SILENT or FAIL only"
REASON_TOO_LONG = b"ERR REASON must have at most 1024 bytes"
EXTEND_NOT_POSITIVE = b"ERR ms must be > 0"
EXTEND_NEEDS_HOLDER = b"ERR XEXTEND needs receipts, or CONSUMER for plain IDs"
SEEK_OUTSIDE = (
    b"ERR The ID is outside the stream: it must be at least just below the oldest "
    b"entry and at most the last ID"
)


def bad_xnack_option(word: bytes) -> CommandError:
    return CommandError(b"ERR Unrecognized XNACK option '%b'" % shown(word))


def unknown_group_setting(word: bytes) -> CommandError:
    text = b"ERR Unknown group setting '%b': XGROUP CONFIG GET key group shows them all"
    return CommandError(text % shown(word))


def bad_group_setting(word: bytes, reason: bytes) -> CommandError:
    return CommandError(b"ERR Group setting '%b': %b" % (shown(word), reason))
