"""What runs inside a contestant's interpreter: load once, then time what the pipe asks for.

In: one JSON object a line on standard input. Out: one JSON object a line on standard output, and vectors as
.npy files. Never: an import of the harness, since a peer's environment has only the peer.
"""
