"""Symbolic variables and functions of them, under PyTensor's names: `import numbascan.tensor as nt`.

NumPy's own functions lead to the same place: `nt.tanh(x)` and `np.tanh(x)` are one on a variable.
"""
# ruff: noqa: F403 - the modules say in __all__ what is public

from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import TYPE_CHECKING, Any

from .front.constructors import *
from .front.control import ifelse as ifelse
from .front.derivatives.of_functions import grad as grad
from .front.derivatives.of_functions import hessian as hessian
from .front.derivatives.of_functions import jacobian as jacobian
from .front.derivatives.of_variables import *
from .front.numpy import fourier as fft  # noqa: F401 - `nt.fft`
from .front.numpy.averages import *
from .front.numpy.creation import *
from .front.numpy.decompositions import *
from .front.numpy.indexing import *
from .front.numpy.joining import *
from .front.numpy.linalg import *
from .front.numpy.math import *
from .front.numpy.neighbours import *
from .front.numpy.places import *
from .front.numpy.quantiles import *
from .front.numpy.rearranging import *
from .front.numpy.reductions import *
from .front.numpy.sets import *
from .front.numpy.shape import *
from .front.numpy.without_nan import *
from .front.random import random_stream as random  # noqa: F401 - `nt.random`
from .front.shared import SharedVariable as SharedVariable
from .front.symbolic import vectorize as vectorize
from .front.variable import Variable as Variable

if TYPE_CHECKING:  # most names are made from tables, which type checkers do not read

    def __getattr__(name: str) -> Any: ...
