"""COMMAND: facts, lists, keys and documentation of commands."""

from __future__ import annotations

import pytest

from felixresp.commands.documentation import Argument, read_grammar
from felixresp.commands.table import COMMANDS
from felixresp.protocol.encoder import encode
from felixresp.protocol.reply import Map, Set, Simple

from .driver import Driver


def test_every_command_is_counted_and_listed(driver: Driver) -> None:
    assert driver.run("COMMAND COUNT") == len(COMMANDS)
    for line in ("COMMAND", "COMMAND LIST", "COMMAND INFO"):
        answer = driver.run(line)
        assert isinstance(answer, list)
        assert len(answer) == len(COMMANDS)


def test_the_facts_of_a_command_are_as_redis_tells_them(driver: Driver) -> None:
    answer = driver.run("COMMAND INFO GET nope config|get|x")

    assert isinstance(answer, list)
    assert encode(answer[:1], 2) == (
        b"*1\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
        b"*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n"
        b"+RO\r\n+access\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n"
        b"$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype"
        b"\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep"
        b"\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n"
    )
    assert answer[1:] == [None, None]


def test_a_subcommand_is_named_with_its_container(driver: Driver) -> None:
    answer = driver.run("COMMAND INFO CONFIG|get")

    assert isinstance(answer, list)
    assert answer[0][0] == b"config|get"


@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        ("PATTERN exp*", [b"expire", b"expireat", b"expiretime"]),
        ("PATTERN MEMORY*", [b"memory", b"memory|help", b"memory|usage"]),
        ("ACLCAT STRING", [b"get", b"set", b"strlen"]),
        ("ACLCAT nope", []),
        ("MODULE nope", []),
    ],
)
def test_commands_are_listed_by_a_filter(
    driver: Driver, filter_: str, names: list[bytes]
) -> None:
    assert driver.run(f"command list filterby {filter_}") == names


@pytest.mark.parametrize("words", ["x", "FILTERBY", "FILTERBY MODULE", "FILTERBY x y"])
def test_list_errors(driver: Driver, words: str) -> None:
    assert driver.error(f"COMMAND LIST {words}") == "ERR syntax error"


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("get a", [b"a"]),
        ("DEL a b c", [b"a", b"b", b"c"]),
        ("rename a b", [b"a", b"b"]),
        ("memory usage a", [b"a"]),
        ("watch a b", [b"a", b"b"]),
        ("xread count 1 streams a b 0 0", [b"a", b"b"]),
        ("xreadgroup group g c streams a >", [b"a"]),
        ("xpoll s g c", [b"s"]),
        ("xnack s g FAIL IDS 1 1-1", [b"s"]),
        ("xextend s g 5 IDS 1 1-1", [b"s"]),
        ("xexplain s g", [b"s"]),
        ("xgroup seek s g 0", [b"s"]),
        ("xgroup config get s g", [b"s"]),
        ("xgroup config set s g mode redis", [b"s"]),
    ],
)
def test_the_keys_of_a_request_are_found(
    driver: Driver, line: str, keys: list[bytes]
) -> None:
    assert driver.run(f"COMMAND GETKEYS {line}") == keys


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("foo", "ERR Invalid command specified"),
        ("config foo a", "ERR Invalid command specified"),
        ("ping", "ERR The command has no key arguments"),
        ("config help", "ERR The command has no key arguments"),
        ("get", "ERR Invalid number of arguments specified for command"),
        ("get a b", "ERR Invalid number of arguments specified for command"),
        ("xread count 1 foo", "ERR Invalid arguments specified for command"),
    ],
)
def test_getkeys_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(f"COMMAND GETKEYS {line}") == text


def test_documentation_is_a_map_of_maps(driver: Driver) -> None:
    answer = driver.run("COMMAND DOCS STRLEN nope")

    arguments = [
        Map(
            [
                (b"name", b"key"),
                (b"type", b"key"),
                (b"display_text", b"key"),
                (b"key_spec_index", 0),
            ]
        )
    ]
    assert answer == Map(
        [
            (
                b"strlen",
                Map(
                    [
                        (b"summary", b"The length of a string key's value."),
                        (b"since", b"2.2.0"),
                        (b"group", b"string"),
                        (b"complexity", b"O(1)"),
                        (b"arguments", arguments),
                    ]
                ),
            )
        ]
    )


def test_documentation_of_a_container_has_its_subcommands(driver: Driver) -> None:
    answer = driver.run("COMMAND DOCS memory")

    assert isinstance(answer, Map)
    container = answer.pairs[0][1]
    assert isinstance(container, Map)
    subcommands = dict(container.pairs)[b"subcommands"]
    assert isinstance(subcommands, Map)
    assert [name for name, _ in subcommands.pairs] == [b"memory|help", b"memory|usage"]


def test_everything_is_documented_at_once(driver: Driver) -> None:
    answer = driver.run("COMMAND DOCS")

    assert isinstance(answer, Map)
    assert [name for name, _ in answer.pairs] == list(COMMANDS)


def outline(argument: Argument) -> object:
    """The tree as nested tuples."""
    name = f"{argument.token} {argument.name}".strip()
    shape = f"{name}:{argument.kind}" + "".join(f" {f}" for f in argument.flags)
    return (shape, *map(outline, argument.parts)) if argument.parts else shape


@pytest.mark.parametrize(
    ("grammar", "tree"),
    [
        ("", []),
        ("key [key ...]", ["key:key multiple"]),
        ("[COUNT count]", ["COUNT count:integer optional"]),
        (
            "field value [field value ...]",
            [("field:block multiple", "field:string", "value:string")],
        ),
        (
            "<ON | OFF>",
            [("on:oneof", "ON on:pure-token", "OFF off:pure-token")],
        ),
        (
            "GROUP group consumer [NOACK] STREAMS key [key ...] id [id ...]",
            [
                ("GROUP group:block", "group:string", "consumer:string"),
                "NOACK noack:pure-token optional",
                ("STREAMS streams:block", "key:key multiple", "id:string multiple"),
            ],
        ),
        (
            "GROUP group consumer id",
            [("GROUP group:block", "group:string", "consumer:string", "id:string")],
        ),
        (
            "IDS numids <id | receipt> [<id | receipt> ...]",
            [
                "IDS numids:integer",
                ("id:oneof multiple", "id:string", "receipt:string"),
            ],
        ),
        (
            "[[IDLE min-idle-time] start [consumer]]",
            [
                (
                    "min-idle-time:block optional",
                    "IDLE min-idle-time:integer optional",
                    "start:string",
                    "consumer:string optional",
                )
            ],
        ),
        (
            "unix-time-seconds pattern",
            ["unix-time-seconds:unix-time", "pattern:pattern"],
        ),
    ],
)
def test_arguments_are_read_out_of_the_grammar(
    grammar: str, tree: list[object]
) -> None:
    assert [outline(argument) for argument in read_grammar(grammar)] == tree


def test_flags_of_an_argument_are_a_set() -> None:
    reply = read_grammar("[message]")[0].reply()

    assert isinstance(reply, Map)
    assert dict(reply.pairs)[b"flags"] == Set([Simple(b"optional")])
