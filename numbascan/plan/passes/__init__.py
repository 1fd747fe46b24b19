"""Loop passes: each file holds one function of its name, from a function of loops to one that gives the same values faster.

They import ir/, cost.py and target.py, and no other room of plan/.
`plan` calls those that its target lists, in their order, but for those that a mode leaves out.
"""
