"""What generated code calls at run time: scalar functions, random numbers, threads, memory."""
