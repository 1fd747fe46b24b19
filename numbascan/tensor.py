"""Symbolic variables and functions of them, under PyTensor's names: `import numbascan.tensor as nt`.

Every function here is reached by NumPy's name too: `nt.tanh(x)` and `np.tanh(x)` are the same on a variable.
"""

import contextlib


with contextlib.suppress(ImportError):
    from .front.math import *
with contextlib.suppress(ImportError):
    from .front.shape import *
with contextlib.suppress(ImportError):
    from .front.indexing import *
with contextlib.suppress(ImportError):
    from .front.reductions import *
with contextlib.suppress(ImportError):
    from .front.creation import *
with contextlib.suppress(ImportError):
    from .front.linalg import *
with contextlib.suppress(ImportError):
    from .front.control import ifelse

from .front.shared import SharedVariable
from .front.tensor import *
from .front.tensor import as_tensor, as_tensor_variable, constant, tensor
from .front.variable import Variable
