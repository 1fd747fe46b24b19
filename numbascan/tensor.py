"""Symbolic variables and functions of them, under PyTensor's names: `import numbascan.tensor as nt`.

NumPy's own functions lead to the same place: `nt.tanh(x)` and `np.tanh(x)` are one on a variable.
"""
# ruff: noqa: F403 - the modules say in __all__ what is public

from typing import TYPE_CHECKING, Any

from .front import random as random
from .front.arranging import *
from .front.averages import *
from .front.control import ifelse as ifelse
from .front.creation import *
from .front.gradients import *
from .front.indexing import *
from .front.joining import *
from .front.linalg import *
from .front.math import *
from .front.reductions import *
from .front.shape import *
from .front.shared import SharedVariable as SharedVariable
from .front.tensor import *
from .front.variable import Variable as Variable

if TYPE_CHECKING:  # most names are made from tables, which type checkers do not read

    def __getattr__(name: str) -> Any: ...
