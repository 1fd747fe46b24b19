"""Memory that kernels take."""

import re
from pathlib import Path

import numpy as np
import pytest
from shortcuts_taken import needs

import numbascan as ns


@needs("np_empty")
@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="a system without large pages")
def test_large_results_ask_for_large_pages():
    rows = ns.jit(lambda x: ns.scan(lambda x, s: s + x, sequences=x, outputs_info=0.0, return_updates=False))(np.ones(4_000_000))
    middle, holds = rows.ctypes.data + rows.nbytes // 2, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds is not None:
            holds = int(bounds[1], 16) <= middle < int(bounds[2], 16)
        elif holds and line.startswith("VmFlags:"):
            assert "hg" in line.split()
            return
    pytest.fail("no mapping holds the result")
