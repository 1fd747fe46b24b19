"""
Conway's game of life
=====================

A board on which cells live with two or three neighbours, and are born with three. A
glider moves by one cell down and to the right in four generations.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


@ns.jit
def live(board, generations):
    """The board after so many generations, and how many cells lived in each."""
    rows, columns = board.shape
    alive = np.zeros(generations, dtype=np.int64)
    for t in range(generations):
        new = np.zeros_like(board)
        for i in range(rows):
            for j in range(columns):
                around = -board[i, j]
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        around += board[(i + di) % rows, (j + dj) % columns]
                if around == 3 or (around == 2 and board[i, j] == 1):
                    new[i, j] = 1
        board = new
        alive[t] = np.sum(board)
    return board, alive


glider = np.zeros((60, 60), dtype=np.int64)
glider[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
moved, _ = live(glider, 80)

soup = np.random.default_rng(2).integers(0, 2, (120, 120))
late, alive = live(soup, 1_000)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.imshow(late, cmap="binary")
left.set_axis_off()
right.plot(alive)
right.set(xlabel="generation", ylabel="cells alive", ylim=(0, None))
plt.show()

# %%
# The check: after 80 generations the glider is 20 cells further.

print(f"{alive[-1]} cells live on; the glider is where it should be:", end=" ")
print(np.array_equal(moved, np.roll(glider, (20, 20), axis=(0, 1))))
assert np.array_equal(moved, np.roll(glider, (20, 20), axis=(0, 1)))
