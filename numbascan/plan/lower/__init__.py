"""How each node of a graph becomes statements: one file per kind of lowering, the scope that they work in, and the whole function.

It imports ir/, ops/, storage/ and builder.py, and nothing of passes/; lowerings meet only through the scope, function.py has their table.
`plan` calls FunctionBuilder, and no one else calls anything here.
"""
