"""Functions under torch's derivatives, lanes and compiler, against the same loop in torch."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

torch = pytest.importorskip("torch")

GAIN = 2.0
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning:torch.*")


def rows_of(rate, x):
    rows = ns.scan(lambda x, y: rate * y + np.tanh(x), x, 0.0, return_updates=False)
    return {"last": rows[-1], "rows": rows}


def rows_by_torch(rate, x):
    y, rows = torch.zeros((), dtype=x.dtype), []
    for row in x:
        y = rate * y + torch.tanh(row)
        rows.append(y)
    return {"last": y, "rows": torch.stack(rows)}


wrapped = ns.interop.torch.function(rows_of)


def arguments(*, needs=True):
    rate = torch.tensor(0.5, dtype=torch.float64, requires_grad=needs)
    return rate, torch.linspace(0.1, 1.0, 5, dtype=torch.float64).requires_grad_(needs)


def cost(f):
    return lambda rate, x: f(rate, x)["rows"].sum() ** 2 + f(rate, x)["last"]


def agree(mine, other):
    torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)


def test_derivatives_are_those_of_differences_to_order_two():
    def f(rate, x):
        return tuple(wrapped(rate, x).values())

    assert torch.autograd.gradcheck(f, arguments(), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, arguments())


TRANSFORMS = {
    "grad": lambda f: torch.func.grad(f, (0, 1)),
    "jvp": lambda f: lambda rate, x: torch.func.jvp(f, (rate, x), (torch.ones_like(rate), x)),
    "jacrev of jacrev": lambda f: torch.func.jacrev(torch.func.jacrev(f, 1), 1),
    "hessian": lambda f: torch.func.hessian(f, 1),
    "vmap": lambda f: lambda rate, x: torch.func.vmap(f, (None, 0))(rate, torch.stack([x, 2 * x])),
    "vmap of axis 1": lambda f: lambda rate, x: torch.func.vmap(f, (None, 1))(rate, torch.stack([x, 2 * x], 1)),
    "vmap of vmap": lambda f: (
        lambda rate, x: torch.func.vmap(torch.func.vmap(f, (None, 0)), (0, None))(torch.stack([rate, 2 * rate]), torch.stack([x, 2 * x]))
    ),
    "vmap of grad": lambda f: lambda rate, x: torch.func.vmap(torch.func.grad(f, 1), (None, 0))(rate, torch.stack([x, 2 * x])),
    "grad of vmap": lambda f: torch.func.grad(lambda rate, x: torch.func.vmap(f, (None, 0))(rate, torch.stack([x, 2 * x])).sum(), (0, 1)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    mine, other = (TRANSFORMS[name](cost(f))(*arguments(needs=False)) for f in (wrapped, rows_by_torch))
    agree(mine, other)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_whole_graphs(backend):
    torch.compiler.reset()
    compiled = torch.compile(lambda rate, x: 2.0 * cost(wrapped)(rate, x), backend=backend, fullgraph=True)
    rate, x = arguments()
    mine, other = compiled(rate, x), 2.0 * cost(rows_by_torch)(rate, x)
    agree(mine, other)
    agree(torch.autograd.grad(mine, (rate, x)), torch.autograd.grad(other, (rate, x)))


def test_compiled_code_sees_other_lengths():
    torch.compiler.reset()
    compiled = torch.compile(lambda rate, x: wrapped(rate, x)["rows"] + 1.0, backend="aot_eager", fullgraph=True)
    for n in (4, 7, 30):
        rate, x = arguments(needs=False)[0], torch.linspace(0.0, 1.0, n, dtype=torch.float64)
        agree(compiled(rate, x), rows_by_torch(rate, x)["rows"] + 1.0)


def test_torchs_own_checks_of_the_op():
    rate, x = arguments()
    wrapped(rate, x)
    number = next(k for k, flat in enumerate(ns.interop.torch._flats) if "rows_of" in flat.name)
    torch.library.opcheck(ns.interop.torch._call, ([rate, x], number))


def test_nothing_is_copied_on_the_cpu(monkeypatch):
    seen = []
    f = ns.interop.torch.function(lambda x: x * 2.0)
    x = torch.ones(3, dtype=torch.float64)
    f(x)
    flat = ns.interop.torch._flats[-1]
    monkeypatch.setattr(flat, "compiled", lambda *arrays: (seen.append(arrays), arrays[0] * 2.0)[1])
    monkeypatch.setattr(type(flat), "types", lambda self, kinds: ([], "*"))
    result = f(x)
    assert seen[0][0].__array_interface__["data"][0] == x.data_ptr()
    assert result.data_ptr() == result.numpy().__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "bool"])
def test_dtypes_are_numpys(dtype):
    x = torch.ones(3, dtype=getattr(torch, dtype))
    result = ns.interop.torch.function(lambda x: x * x)(x)
    assert str(result.dtype).removeprefix("torch.") == (x.numpy() * x.numpy()).dtype.name


def test_integers_have_no_derivative_and_numbers_are_taken():
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    product, count = ns.interop.torch.function(lambda x, k, *, shift=0.0: (x * k + shift, k + 1))(x, torch.tensor(3), shift=1.0)
    product.backward()
    assert (product.detach().item(), x.grad.item(), int(count), count.requires_grad) == (7.0, 3.0, 4, False)


def test_strided_and_conjugated_tensors_are_read_as_they_are():
    x = torch.arange(6.0, dtype=torch.float64)[::2]
    assert ns.interop.torch.function(np.cumsum)(x).tolist() == [0.0, 2.0, 6.0]
    z = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert ns.interop.torch.function(lambda z: z + 0)(z).tolist() == [1 - 2j, 3 + 1j]


def test_what_is_read_from_outside_is_seen_anew(monkeypatch):
    f = ns.interop.torch.function(lambda x: x * GAIN)
    assert float(f(torch.tensor(3.0))) == 6.0
    monkeypatch.setitem(globals(), "GAIN", 5.0)
    assert float(f(torch.tensor(3.0))) == 15.0


def test_what_is_refused():
    stream = nt.random.RandomStream(3)
    one = torch.tensor(1.0, dtype=torch.float64)
    with pytest.raises(TypeError, match="takes a function"):
        ns.interop.torch.function(3.0)
    with pytest.raises(ValueError, match="the length of result 0 depends on values"):
        ns.interop.torch.function(lambda x: ns.scan(lambda y: (2 * y, ns.until(y > 3)), outputs_info=x, n_steps=9, return_updates=False))(
            one
        )
    with pytest.raises(TypeError, match=r"ns\.interop\.torch\.function.*draw"):
        ns.interop.torch.function(lambda x: x + stream.normal())(one)
    with pytest.raises(TypeError, match="float16"):
        ns.interop.torch.function(lambda x: x)(one.half())
    with pytest.raises(TypeError, match="tensors of the CPU, not of meta"):
        ns.interop.torch.function(lambda x: x)(one.to("meta"))
    with pytest.raises(ns.NullGradientError):
        ns.interop.torch.function(ns.external(numba.njit(lambda x: x * 2)))(one.requires_grad_()).backward()
