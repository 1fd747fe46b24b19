"""Text for a GPU: a module with a host function and kernels; loops as grids, products for cuBLAS."""
