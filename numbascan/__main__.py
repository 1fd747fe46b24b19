"""`python -m numbascan` is the command `numbascan`."""

from .cli import main

raise SystemExit(main())
