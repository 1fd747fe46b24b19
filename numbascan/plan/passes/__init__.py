"""Functions of loops become better functions of loops."""
