"""`ns.batch`: a function of one case, run on many, chunk by chunk, into memory or into a Zarr store.

What the files hold: `inputs` (cases read by their numbers), `lanes` (the compiled function of a chunk, and which case fails), `chunks`
(which cases make a chunk), `place` (where a store lies, `lock`), `chunk_writer` (a chunk into a store), `store` (which chunks are there),
`progress`, `batch` (the loop over chunks), `remote` (on workers of Dask, `devices`), `scans`, `command` (`numbascan run` and `status`).
May import everything below; `cli` alone imports it. Zarr, tqdm and Dask are imported where they are used.
"""
