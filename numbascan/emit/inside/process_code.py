"""Compiles a text of LLVM's, once in a process, into functions for all kernels."""

from __future__ import annotations

from collections.abc import Sequence


def addresses(text: str, names: Sequence[str]) -> dict[str, int]:
    """The addresses of a text's functions, by name. LLVM knows them from now on, and the code stays as long as the process lives."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(opt=0)  # 3 ms; 8 with opt=2
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    places = {name: engine.get_function_address(name) for name in names}
    engine.detach()  # objects that kernels have made, such as arrays, may call the code when Python has ended
    for name, address in places.items():
        binding.add_symbol(name, address)
    return places
