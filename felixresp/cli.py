"""The command line: every setting is a flag; a flag wins over the environment."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from . import __version__
from .config import SETTINGS, InvalidSetting, Settings

_BAD_USAGE = 2
_DESCRIPTION = "Durable Redis Streams with leases, retries and dead letters."
_EPILOG = (
    "Every setting of CONFIG GET * is a flag (--name value) and an environment"
    " variable (FELIX_NAME); docs/operations.md explains them."
)
_SHOWN = {
    "bind": "address to listen on",
    "port": "0 picks a free one",
    "dir": "where the data is kept",
    "requirepass": "password that clients must give",
    "aclfile": "users and their rights; in --dir, or a whole path",
    "durability": "always, 'interval MS' or none",
}


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_USAGE, f"felixresp: {message}; see felixresp --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 for a start that failed, 2 for a wrong call."""
    parser = _parser()
    flags = vars(parser.parse_args(argv))
    if flags.pop("demo"):
        from . import demo  # noqa: PLC0415

        return demo.run()
    try:
        settings = _settings(flags, os.environ)
    except InvalidSetting as error:
        parser.error(str(error))
    from . import app  # noqa: PLC0415  # --help and --version need no server

    try:
        app.run(settings, lambda line: print(line, flush=True))
    except app.StartError as error:
        print(f"felixresp: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(
        prog="felixresp",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        usage="felixresp [--port PORT] [--dir DIR] [--SETTING VALUE ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--demo", action="store_true", help="show the main job in this terminal"
    )
    for name, row in SETTINGS.items():
        shown = f"{_SHOWN[name]} (default {row.default!r})" if name in _SHOWN else None
        parser.add_argument(
            f"--{name}",
            dest=name,
            metavar="VALUE",
            help=shown or argparse.SUPPRESS,
        )
    return parser


def _settings(
    flags: Mapping[str, str | None], environment: Mapping[str, str]
) -> Settings:
    """Raises InvalidSetting, naming the flag or the variable."""
    settings = Settings()
    settings.read_environment(environment)
    for name, text in flags.items():
        if text is not None:
            try:
                settings.set(name, text)
            except InvalidSetting as error:
                msg = f"--{name}: {error}"
                raise InvalidSetting(msg) from None
    return settings
