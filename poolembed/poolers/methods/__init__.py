"""Pooling methods: what becomes of the token vectors of a row.

In: packed hidden states and the metadata of the rows.
Out: one vector a row (sequence methods) or one matrix a row (token methods), not yet projected,
    classified or normalised: that is the head's part.
Never: a model, a file, padding.

A new method is one small file here and one line in `registry`, or a class in another package that
names itself in the entry point group `poolembed.pooling_methods`; `conformance` checks either.
"""
