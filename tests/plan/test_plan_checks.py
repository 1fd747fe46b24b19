"""Checks of plans (`--check-plans`) find faults that are put into the planner, and nothing where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json
from contextlib import suppress
from unittest import mock
import numpy as np, numbascan as ns, numbascan.tensor as nt
from numbascan.ir.loops import Apply, Template
from numbascan.plan.lower import contract, loop, step as loop_step
from numbascan.plan.passes import fusion
from numbascan.plan.storage import inplace, states
from plan_checks import checked

A, B, X = np.arange(1.0, 21), np.linspace(-1, 1, 20), np.arange(5.0)

def run(f, **arguments):
    with suppress(Exception):  # of a plan with a fault: it was checked before
        f(**arguments)

def numbers(a, b, s):
    return 0.5 * a, b + a[0], s * a[1]

def ends(a, b, s):
    return (0.5 * a, b + a[0], s + 1), ns.until(a[0] < 0.3)

def parts(a, b, s):
    i = nt.cast(s, "int64")
    return nt.set_subtensor(a[i], b[i] + 1), nt.set_subtensor(b[i], 2 * b[0] * a[i]), s + 1

def circle(a, b, s):
    return a + b[::-1], b - 0.5 * a[::-1], s + 1

def shifted(a, b, s):
    return a + np.roll(a, 1), b, s + 1

def passes(a, b, s):
    c = a * s + b
    return c + c[::-1], b + c.sum(), s + 1

def always(*_):
    return True

def in_text(dtype, template, args):
    is_product = template.text.startswith("np.dot")
    return Apply(dtype, Template("np.dot({}, {})".format(*(arg.array for arg in args))), ()) if is_product else Apply(dtype, template, args)

FAULTS = {
    "none": (inplace, {"updated_in_place": inplace.updated_in_place}),
    "numbers are read where they are stored": (loop_step.Step, {"_held": lambda self, expr, hint: expr}),
    "rows are overwritten in any order": (inplace, {"_turns": lambda *_: {}}),
    "rows are overwritten whatever is read of them": (inplace, {"_reads_aligned": always}),
    "loops are merged whatever they read": (fusion, {"_may_interleave": always}),
    "initial rows of rings are not written": (states, {"write_initial": lambda storage, array: None}),
    "every second row finds no place": (loop, {"every_count": lambda steps, start, k: 1}),
    "arrays stand in the text of a routine alone": (contract, {"Apply": in_text}),
}
faults, functions = {}, {}
for word, (owner, changes) in FAULTS.items():
    with mock.patch.multiple(owner, **changes), checked() as checks:
        for step in (numbers, ends, parts, circle, shifted, passes):
            run(ns.scan(step), outputs_info=[A, B, 1.0], n_steps=4)
        run(ns.scan(lambda a, s: (0.5 * a, s + np.dot(a, a))), outputs_info=[np.ones(600), 0.0], n_steps=2)
        run(ns.scan(lambda x, a, b: (a[::-1] + x, b + a[0]), save_every=2), sequences=X, outputs_info=[A, B])
        run(ns.scan(lambda x, a, b: x + a * b[::-1]), sequences=X, outputs_info=dict(initial=np.stack([A, B]), taps=[-1, -2]))
    faults[word], functions[word] = [str(fault) for fault in checks.faults], checks.functions
print(json.dumps({"faults": faults, "functions": functions["none"]}))
"""


def test_faults_are_found_and_nothing_where_there_is_none() -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    faults, functions = found["faults"], found["functions"]
    assert faults.pop("none") == []
    assert [word for word, messages in faults.items() if not messages] == []
    assert functions > 40
