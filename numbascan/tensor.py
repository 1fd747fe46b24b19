"""Symbolic variables and functions of them, under PyTensor's names: `import numbascan.tensor as nt`.

Every function here is reached by NumPy's name too: `nt.tanh(x)` and `np.tanh(x)` are the same on a variable.
"""

from .front.control import ifelse as ifelse
from .front.creation import *
from .front.indexing import *
from .front.joining import *
from .front.linalg import *
from .front.math import *
from .front.reductions import *
from .front.shape import *
from .front.shared import SharedVariable as SharedVariable
from .front.tensor import *
from .front.variable import Variable as Variable
