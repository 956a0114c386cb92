"""``python -m conformance``: the same cases on felixresp and on real servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import runner, servers
from .servers import ServerDidNotStart


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "--url", action="append", default=[], help="servers; the first is the reference"
    )
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--resp", type=int, choices=(2, 3), action="append")
    parser.add_argument(
        "--mode",
        choices=servers.MODES,
        default=servers.LEASE,
        help="of felixresp's groups: those of mode redis are as in Redis",
    )
    parser.add_argument(
        "--self-check",
        action="store_true",
        help="a second authority in place of felixresp",
    )
    options = parser.parse_args(argv)
    if len(options.url) == 1:
        parser.error("--url is given once: name the servers to compare with it too")
    try:
        explained = runner.run(
            urls=options.url,
            self_check=options.self_check,
            only=options.only,
            mode=options.mode,
            protocols=options.resp or runner.PROTOCOLS,
        )
    except ServerDidNotStart as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if explained else 1


if __name__ == "__main__":
    sys.exit(main())
