"""One workload in a fresh process, once: `python benches/fresh.py MODULE WORKLOAD`."""

import sys
from importlib import import_module

from data import inputs

module, name = sys.argv[1:]
import_module(module).call(name, inputs(name))()
