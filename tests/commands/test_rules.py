"""What each rule of ACL SETUSER makes of a user, and the rules that are refused."""

from __future__ import annotations

import pytest

from felixresp.commands.permission import is_refused
from felixresp.commands.table import COMMANDS
from felixresp.protocol.reply import OK, Error

from .driver import Driver

BAD = "ERR Error in ACL SETUSER modifier"
UNKNOWN = "Unknown command or category name in ACL"
EMPTY = "resetchannels -@all"
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of "test"


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ("", f"off sanitize-payload {EMPTY}"),
        ("on nopass", f"on nopass sanitize-payload {EMPTY}"),
        ("ON NoPass off resetpass", f"off sanitize-payload {EMPTY}"),
        ("skip-sanitize-payload", f"off skip-sanitize-payload {EMPTY}"),
        (">test >test", f"off sanitize-payload #{HASH} {EMPTY}"),
        (f"#{HASH}", f"off sanitize-payload #{HASH} {EMPTY}"),
        (f">test !{HASH}", f"off sanitize-payload {EMPTY}"),
        (">test <test", f"off sanitize-payload {EMPTY}"),
        ("~a %R~b %W~c %r~c", "off sanitize-payload ~a %R~b ~c resetchannels -@all"),
        ("~a allkeys", "off sanitize-payload ~* resetchannels -@all"),
        ("~* resetkeys", f"off sanitize-payload {EMPTY}"),
        ("&a &a &b", "off sanitize-payload resetchannels &a &b -@all"),
        ("allchannels", "off sanitize-payload &* -@all"),
        ("&* resetchannels", f"off sanitize-payload {EMPTY}"),
        ("+@all -get +GET", "off sanitize-payload resetchannels +@all +get"),
        ("+@read nocommands", f"off sanitize-payload {EMPTY}"),
        ("+config|get +config", f"off sanitize-payload {EMPTY} +config"),
        ("+@read -@read", f"off sanitize-payload {EMPTY} -@read"),
        ("+get|a +get|A", f"off sanitize-payload {EMPTY} +get|a"),
        ("(~a +get)", f"off sanitize-payload {EMPTY} (~a resetchannels -@all +get)"),
        ("( +get ) clearselectors", f"off sanitize-payload {EMPTY}"),
        (
            "group:a/b group:c/d group:a/b",
            "off sanitize-payload resetchannels group:a/b group:c/d -@all",
        ),
        ("on ~a +get group:a/b reset", f"off sanitize-payload {EMPTY}"),
    ],
)
def test_rules_make_a_user(driver: Driver, rules: str, shown: str) -> None:
    driver.run([b"ACL", b"SETUSER", b"u", *rules.encode().split(b" ")])

    assert driver.show("ACL LIST")[1:] == [f"user u {shown}"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("foo", "Syntax error"),
        ("+foo", UNKNOWN),
        ("-@foo", UNKNOWN),
        ("+|x", UNKNOWN),
        ("-get|x", UNKNOWN),
        ("+foo|x", UNKNOWN),
        ("+config|x", UNKNOWN),
        ("+select|", "Syntax error"),
        ("+config|get|x", "Allowing first-arg of a subcommand is not supported"),
        ("%~a", "Syntax error"),
        ("~a\tb", "Syntax error"),
        ("&a\nb", "Syntax error"),
        ("(on)", "Syntax error"),
        ("<none", "The password you are trying to remove from the user does not exist"),
        (
            "#abc",
            "The password hash must be exactly 64 characters and contain only lowercase"
            " hexadecimal characters",
        ),
    ],
)
def test_a_wrong_rule_is_named_and_nothing_changes(
    driver: Driver, rule: str, text: str
) -> None:
    driver.script("ACL SETUSER u on >pw")
    before = driver.show("ACL LIST")

    words = [b"ACL", b"SETUSER", b"u", b"+get", rule.encode()]
    answer = driver.run(words)

    assert answer == Error(f"{BAD} '{rule}': {text}".encode())
    assert driver.show("ACL LIST") == before


@pytest.mark.parametrize(
    ("rules", "hint"), [("~* ~a", "resetkeys"), ("&* &a", "resetchannels")]
)
def test_a_pattern_beside_all_of_them_is_refused(
    driver: Driver, rules: str, hint: str
) -> None:
    assert f"Try '{hint}'" in driver.error(f"ACL SETUSER u {rules}")


def test_a_parenthesis_that_does_not_end_is_named(driver: Driver) -> None:
    assert driver.error("ACL SETUSER u on (+get ~a") == (
        "ERR Unmatched parenthesis in acl selector starting at '(+get'."
    )


def test_a_user_name_has_no_spaces(driver: Driver) -> None:
    assert driver.error("ACL SETUSER 'a b'") == (
        "ERR Usernames can't contain spaces or null characters"
    )


def test_new_users_have_the_channels_of_the_setting(driver: Driver) -> None:
    driver.script(
        "CONFIG SET acl-pubsub-default allchannels\nACL SETUSER u '(+get)' reset"
    )

    assert driver.show("ACL LIST")[1] == "user u off sanitize-payload &* -@all"


def test_a_first_argument_allows_the_command_with_it_alone(driver: Driver) -> None:
    driver.script("ACL SETUSER u on nopass +select|1\nAUTH u x")

    assert driver.run("SELECT 1") == OK
    assert driver.error("SELECT 0").startswith("NOPERM User u")


def test_the_verbs_that_answer_without_looking_far(driver: Driver) -> None:
    driver.script("ACL SETUSER u +get ~a")
    for line, text in (
        ("ACL DELUSER default", "ERR The 'default' user cannot be removed"),
        ("ACL DRYRUN nobody get a", "ERR User 'nobody' not found"),
        ("ACL DRYRUN u foo", "ERR Command 'foo' not found"),
        ("ACL DRYRUN u config foo", "ERR Command 'config' not found"),
        ("ACL DRYRUN u get", "ERR wrong number of arguments for 'get' command"),
        ("ACL CAT foo", "ERR Unknown category 'foo'"),
        (
            "ACL GENPASS 0",
            "ERR ACL GENPASS argument must be the number of bits for the"
            " output password, a positive number up to 4096",
        ),
        *(
            (
                f"ACL {verb} 1 2",
                "ERR unknown subcommand or wrong number of arguments"
                f" for '{verb}'. Try ACL HELP.",
            )
            for verb in ("CAT", "GENPASS", "LOG")
        ),
    ):
        assert driver.error(line) == text

    assert driver.show("ACL DRYRUN u set a 1") == (
        "User u has no permissions to run the 'set' command"
    )
    assert driver.show("ACL GETUSER nobody") is None
    assert driver.show("ACL HELP")[0].startswith("ACL <subcommand>")
    assert driver.show("ACL CAT")[-2:] == ["consume", "manage"]
    assert driver.show("ACL WHOAMI") == "default"
    assert driver.error("ACL SAVE").startswith("ERR This Redis instance is not")
    assert driver.error("CLIENT KILL USER u2") == "ERR No such user 'u2'"
    assert driver.show("CLIENT KILL USER default") == 0
    assert driver.show("ACL LOG RESET") == "OK"


@pytest.mark.parametrize(
    ("taken", "reason"),
    [
        (b"-get", b"no permission to execute the command or subcommand"),
        (b"resetkeys", b"no permission to touch the specified keys"),
    ],
)
def test_exec_refuses_what_was_taken_away_and_runs_the_rest(
    driver: Driver, taken: bytes, reason: bytes
) -> None:
    driver.script(
        """
        ACL SETUSER u on nopass +@transaction +get +ping ~*
        AUTH u x
        MULTI
        GET a
        PING
        """
    )
    driver.server.users.change(b"u", [taken])

    first, second = driver.show("EXEC")

    assert first == (
        "!NOPERM ACLs rules changed between the moment the transaction was accumulated"
        " and the EXEC call. This command is no longer allowed for the following"
        f" reason: {reason.decode()}"
    )
    assert second == "PONG"


def test_a_default_user_that_is_closed_in_a_transaction_closes_the_rest(
    driver: Driver,
) -> None:
    driver.client.user = driver.server.users.guest  # came while there was a password
    driver.script("MULTI\nCONFIG SET requirepass pw\nPING\nAUTH pw\nPING")

    assert driver.show("EXEC") == [
        "OK",
        "!NOAUTH Authentication required.",
        "OK",
        "PONG",
    ]


def test_set_reads_its_key_where_it_is_asked_to(driver: Driver) -> None:
    driver.script("ACL SETUSER u on nopass +set %W~a\nAUTH u x\nSET a 1")

    assert driver.error("SET a 1 get") == "NOPERM No permissions to access a key"


def test_a_read_without_streams_is_left_to_its_handler(driver: Driver) -> None:
    driver.script("ACL SETUSER u on nopass +xreadgroup ~a group:a/g\nAUTH u x")

    for line in ("XREADGROUP GROUP g c COUNT 1 BLOCK 0", "XREADGROUP a b c d e f g"):
        assert driver.error(line) == "ERR syntax error"


def test_to_look_whether_a_command_is_refused_logs_nothing(driver: Driver) -> None:
    get, ping = COMMANDS[b"get"], COMMANDS[b"ping"]
    driver.script("ACL SETUSER u on nopass +ping\nAUTH u x")

    assert is_refused(driver.context(), get, [b"GET", b"a"])
    assert not is_refused(driver.context(), ping, [b"PING"])
    driver.require_password("pw")
    assert is_refused(driver.context(), ping, [b"PING"])
    assert not is_refused(driver.context(), COMMANDS[b"auth"], [b"AUTH", b"pw"])
    driver.script("AUTH pw")
    assert driver.show("ACL LOG") == []
