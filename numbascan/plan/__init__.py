"""From graphs to loops: how a card becomes loops (lower/), where values live (storage/), loop passes (passes/, gpu/), for a target.

It imports ir/ and ops/ alone; within it plan.py and the targets stand above the rooms, builder.py, cost.py and target.py below them.
compile.py calls `plan`, with the target that it chose.
"""
