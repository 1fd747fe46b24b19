"""Every function that generated code calls can be written into a module, or says why not."""

from __future__ import annotations

from itertools import chain

import pytest

from numbascan.emit.export.sources import NotPortable, Sources, _module
from numbascan.emit.names import HELPERS, INTRINSICS, ROUTINES

LEFT_OUT = {name for name in INTRINSICS if not name.startswith("wrapping")}  # from modules that stand alone
CALLED = [name for names in HELPERS.values() for name in names if not (name.endswith("_in_lanes") or name in LEFT_OUT)]
OF_MODULES = {module: list(_module(f"numbascan.emit.runtime.routines.{module}").defined) for module in ROUTINES}
CALLED_WHOLE = [
    f"{module}.{name}"
    for module, names in OF_MODULES.items()
    for name in names
    if name[0] != "_" and ("_into" in name or name.endswith("_ahead"))
]


def refusal(take, name):
    """Why a name cannot be taken, "" where it can: then its text defines it."""
    sources = Sources()
    try:
        known_as = getattr(sources, take)(name)
    except NotPortable as error:
        return str(error)
    text = "\n".join(sources.text())
    compile(text, name, "exec")
    assert f"def {known_as}(" in text or f"{known_as} = " in text or f"{known_as}, " in text
    return ""


def test_functions_of_numbers_travel_unless_scipy_has_them():
    refused = {name: reason for name in CALLED if (reason := refusal("helper", name))}
    assert all("machine code of SciPy" in reason for reason in refused.values())
    assert set(HELPERS["special"]) - set(refused) == {"digamma", "polygamma"}
    assert {"exp", "sigmoid", "random_gamma", "wrapping_mul", "complex_power"}.isdisjoint(refused)


def test_routines_travel_unless_lapack_or_numpy_has_them():
    refused = {name: reason for name in CALLED_WHOLE if (reason := refusal("routine", name))}
    machine_code = {"fourier": "machine code of NumPy", "spectral": "LAPACK"}
    assert {name.partition(".")[0] for name in refused} == set(machine_code)
    for name, reason in refused.items():
        assert machine_code[name.partition(".")[0]] in reason


@pytest.mark.parametrize("name", ["linalg.solve_into_3", "np.dot"])
def test_a_routine_has_the_name_of_its_general_form(name):
    assert Sources().routine(name) in ("solve_into", "dot_into")


def test_no_name_means_two_things():
    places: dict[str, set[str]] = {}
    for take, name in chain((("helper", name) for name in CALLED), (("routine", name) for name in CALLED_WHOLE)):
        sources = Sources()
        try:
            getattr(sources, take)(name)
        except NotPortable:
            continue
        for known_as, module in sources._modules.items():
            places.setdefault(known_as, set()).add(module)
    assert not {name: modules for name, modules in places.items() if len(modules) > 1}
