"""``python -m felixresp``."""

from .cli import main

raise SystemExit(main())
