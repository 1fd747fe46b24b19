"""Names that generated code may use, and the modules that define them; known here without importing those modules."""

from __future__ import annotations

SCALARS: tuple[str, ...] = ()
SPECIAL: tuple[str, ...] = ()
