"""What a traced function reads from outside. Imports only `front/` files that hold Variables; tracing calls it."""
