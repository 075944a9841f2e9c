"""Backbones with a weakness, around the model of a runner, and rows of given tokens."""

from dataclasses import replace

import numpy as np
import torch

from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import TokenizedRows, segments_of


def rows_of(*rows, **fields):
    return TokenizedRows(
        token_ids=np.asarray([token for row in rows for token in row], np.int64),
        lengths=np.asarray([len(row) for row in rows], np.int64),
        truncated=np.zeros(len(rows), np.bool_),
        **fields,
    )


def with_backbone(runner, kind, **attributes):
    """The runner on another backbone around the same model, on the same path."""
    path = runner.backbone.path
    runner.backbone.use_path("equal-length")
    backbone = kind(runner.backbone.model, runner.backbone.device)
    for name, value in attributes.items():
        setattr(backbone, name, value)
    for either in (runner.backbone, backbone):
        either.use_path(path)
    return replace(runner, backbone=backbone)


class Small(Backbone):
    """Has memory for so many tokens; counts what it was given."""

    room = 10**9
    sizes = ()

    def forward(self, batch):
        self.sizes += (batch.num_tokens,)
        if batch.num_tokens > self.room:
            raise torch.OutOfMemoryError("no room")
        return super().forward(batch)


class Overflowing(Backbone):
    """Gives infinity in half precision for rows with token 100, and always for rows with token 101."""

    seen = ()

    def forward(self, batch):
        self.seen += ((str(self.model.dtype), len(batch.rows)),)
        hidden_states = super().forward(batch).clone()
        ids = torch.from_numpy(batch.token_ids)
        if hidden_states.dtype != torch.float32:
            hidden_states[ids == 100] = float("inf")
        hidden_states[ids == 101] = float("nan")
        return hidden_states


class Pieces(Backbone):
    """Counts rows that ran in pieces, and the tokens of each piece."""

    rows = 0
    pieces = ()

    def forward_in_pieces(self, batch, piece_tokens):
        self.rows += 1
        for piece in super().forward_in_pieces(batch, piece_tokens):
            self.pieces += (len(piece),)
            yield piece


class Counted(Backbone):
    """Counts the tokens that each batch computes, and the prefixes in it."""

    sizes = ()
    prefixes = ()

    def forward(self, batch):
        segments = segments_of(batch)
        self.sizes += (len(segments.token_index),)
        self.prefixes += (segments.num_prefixes,)
        return super().forward(batch)
