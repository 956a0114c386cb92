"""``python -m conformance.compatibility``: what docs/compatibility.md says.

The commands are what a started server says of itself, the differences are the
declared ones: neither is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from . import divergences, servers
from .divergences import Divergence, Kind
from .servers import ServerDidNotStart, Target
from .wire import Connection, Reply

HEAD = """\
# Compatibility with Redis

Made by `python -m conformance.compatibility`; a test fails when it is stale.
`tox -e conformance` holds every command and error against real servers: what differs
is declared in `conformance/divergences.toml`.
"""
TITLES = {
    Kind.LEASE_MODE: "felixresp's own behaviour, on purpose",
    Kind.NOT_YET: "Not built yet",
    Kind.VERSION: "Where older Redis differs from the 8.8 that felixresp follows",
}


def text(target: Target, declared: Sequence[Divergence]) -> str:
    with Connection(target.host, target.port) as connection:
        docs = connection.call(b"COMMAND", b"DOCS")
    lines = [HEAD, "## Commands", "", "| command | since | what it does |", "|-|-|-|"]
    lines += sorted(_rows(docs))
    for kind, title in TITLES.items():
        lines += ["", f"## {title}", ""]
        lines += dict.fromkeys(_difference(d) for d in declared if d.kind is kind)
    return "\n".join(lines) + "\n"


def _rows(docs: Reply) -> Iterator[str]:
    """A command that has subcommands is shown as those."""
    for name, about in _pairs(docs):
        facts = dict(_pairs(about))
        if "subcommands" in facts:
            yield from _rows(facts["subcommands"])
            continue
        shown = name.upper().replace("|", " ")
        since, summary = facts["since"].text, facts["summary"].text
        yield f"| {shown} | {since.decode()} | {summary.decode()} |"


def _pairs(reply: Reply) -> Iterator[tuple[str, Reply]]:
    parts = reply.parts or ()
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        yield name.text.decode(), value


def _difference(divergence: Divergence) -> str:
    seen = [a for a in divergence.against if a != divergences.GOLDEN]
    against = f" (beside {', '.join(seen)})" if seen else ""
    mode = " (not in mode `redis`)" if divergence.mode == servers.LEASE else ""
    return f"- {divergence.reason}{against}{mode}"


def main() -> int:
    try:
        with servers.felixresp() as target:
            print(text(target, divergences.load()), end="")
    except ServerDidNotStart as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
