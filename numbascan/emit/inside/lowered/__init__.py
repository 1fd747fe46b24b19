"""Generated functions, lowered to LLVM from their text (`module.py` says how, and why)."""
