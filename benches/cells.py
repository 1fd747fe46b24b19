"""Neural cells beside JAX, the same text in both: `python benches/cells.py --jax PYTHON [cell or name …]`; names as in cells_data.py.

Both have one core, and must give the same numbers to 1e-6. They take turns; what counts is the median of the ratios, and for a first call
the processor's seconds without a cache on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from cells_data import CELLS, FORMS, KINDS, names
from peers import Worker, beside

MODULES = {"numbascan": "cells_ours", "JAX": "cells_in_jax"}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, for docs/performance.md: JAX's time over ours, and seconds of the first call of the gradient."""
    found = {row["name"]: row for row in rows}
    lines = [
        "| cell, units x series | value, `vmap` | gradient, `vmap` | value, state | gradient, state | first call, ours | JAX |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for cell in dict.fromkeys(name.rsplit("-", 2)[0] for name in found):
        kinds = [f"{cell}-{form}-{kind}" for form in FORMS for kind in KINDS]
        if found.keys() >= set(kinds):
            ratios = " | ".join(f"{1 / found[name]['ratio']:.2f}" for name in kinds)
            first = found[kinds[1]]["first_s"]
            lines.append(f"| {cell.replace('-', ', ')} | {ratios} | {first['numbascan']:.1f} | {first['JAX']:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"cells ({', '.join(CELLS)}) or whole names; all if none")
    parser.add_argument("--jax", required=True, help="the Python of an environment with JAX")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of runs of one candidate per round")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    chosen = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"NUMBASCAN_CACHE_DIR": empty, "JAX_ENABLE_COMPILATION_CACHE": "false", "OPENBLAS_NUM_THREADS": "1"}
        workers = {candidate: Worker({"JAX": chosen.jax}.get(candidate, sys.executable), module) for candidate, module in MODULES.items()}
        print(f"{'cell':<28}{'ours us':>10}{'JAX us':>10}{'ratio':>7}{'first call s':>14}{'JAX s':>7}")
        for name in [one for asked in chosen.names or CELLS for one in (names((asked,)) if asked in CELLS else [asked])]:
            row = beside("JAX", name, workers, chosen.rounds, chosen.seconds)
            rows.append(row)
            us, first = row["us"], row["first_s"]
            print(
                f"{name:<28}{us['numbascan']:>10.0f}{us['JAX']:>10.0f}{row['ratio']:>7.2f}{first['numbascan']:>14.2f}{first['JAX']:>7.2f}",
                flush=True,
            )
    print(table(rows))
    if chosen.json:
        chosen.json.write_text(
            json.dumps({"versions": {k: worker.versions for k, worker in workers.items()}, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
