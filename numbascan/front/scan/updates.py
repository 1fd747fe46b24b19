"""The updates of shared variables, which `ns.scan` returns beside the outputs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..shared import SharedVariable
from ..variable import Variable

WHERE_OUTPUTS_ARE = (
    "ns.scan returns (outputs, updates); write outputs, _ = ns.scan(…), or ns.scan(…, return_updates=False) for the outputs alone"
)


class OrderedUpdates(np.lib.mixins.NDArrayOperatorsMixin, dict[SharedVariable, Variable]):
    """A dict from shared variables to their values after the last step, in the order in which the step returned them.

    `ns.scan(…)[-1]` is this dict, not the last row: whoever uses it as an array gets a TypeError (an AttributeError for an attribute) that
    says so.
    """

    __eq__, __ne__, __or__, __ror__, __ior__ = dict.__eq__, dict.__ne__, dict.__or__, dict.__ror__, dict.__ior__
    __hash__ = None

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"these are the updates of a scan, and no array; {WHERE_OUTPUTS_ARE}")

    __array_ufunc__ = __array_function__ = __array__ = __float__ = __int__ = __complex__ = __index__ = _refuse

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, SharedVariable) else self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        what = f", and no array with {name}; {WHERE_OUTPUTS_ARE}" if hasattr(np.ndarray, name) else f", which have no {name}"
        raise AttributeError(f"these are the updates of a scan{what}", name=name, obj=self)
