"""`ns.batch`: a function of one case, run on many, chunk by chunk, into memory or into a Zarr store.

What the files hold: `inputs` (cases read by their numbers), `lanes` (the compiled function of a chunk, and which case fails), `chunks`
(which cases make a chunk), `store` (Zarr), `progress`, `batch` (the loop over chunks), `command` (`numbascan run` and `status`).
May import everything below; `cli` alone imports it. Zarr, tqdm and Dask are imported where they are used.
"""
