"""Code in LLVM's text that is compiled once in a process, for all kernels."""

from __future__ import annotations

from collections.abc import Sequence


def addresses(text: str, names: Sequence[str], opt: int = 0) -> dict[str, int]:
    """Where functions of a text are, by name. LLVM knows them from now on, and the code stays as long as the process lives.

    opt: as `clang -O`; 3 ms with 0, 8 with 2 for 100 lines.
    """
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(opt=opt)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    places = {name: engine.get_function_address(name) for name in names}
    engine.detach()  # what kernels have made, such as arrays, may call the code when Python has ended
    for name, address in places.items():
        binding.add_symbol(name, address)
    return places
