"""How fast poolembed is beside its peers, and how near to what the machine can do.

In: models, corpora and the interpreters of peers, named by settings. Out: `results/NAME.json` and
docs/performance.md, which is written from it. Never: an import of poolembed's inside, a figure from memory,
a path of somebody's machine.

Every contestant runs in a process of its own (`workers/`), on the same cores and as many threads, and all of
them take turns: A, B, C, A, B, C. Ratios are taken within a round.
"""
