"""One candidate in a process of its own: `python benches/worker.py MODULE` reads requests, one a line, and answers each with one line.

    {"prepare": WORKLOAD, "save": FILE}   runs the workload once and writes its results there, as .npz   -> {}
    {"time": SECONDS}                     times the workload last prepared                               -> {"best": seconds of a run}
    {"cpu": true}                         tells what preparing it took                                   -> {"cpu": processor's seconds}

The first line, before any request, tells versions; {"error": …} is the answer to what went wrong.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from data import inputs
from timing import leaves, timed


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print does not mix with answers
    candidate = import_module(sys.argv[1])
    print(json.dumps({package: version(package) for package in candidate.PACKAGES}), file=answers)
    run: Callable[[], Any] = lambda: None  # noqa: E731 (replaced by the first request)
    prepared = 0.0
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if "prepare" in request:
                arguments = getattr(candidate, "inputs", inputs)(request["prepare"])
                start = time.process_time()
                run = candidate.call(request["prepare"], arguments)
                results = list(leaves(run()))
                prepared = time.process_time() - start
                np.savez(request["save"], *results)
            elif "cpu" in request:
                answer["cpu"] = prepared
            else:
                answer["best"] = timed(run, request["time"])
        except Exception as error:
            answer["error"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
