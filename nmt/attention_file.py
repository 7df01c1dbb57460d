"""Attention matrices of many sentences in one .npz: `weights` (flat, float16) and `shapes` (sentences, 2)."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from nmt.files import atomic_path


def write_attention(path: str | os.PathLike[str], matrices: Iterable[np.ndarray | None]) -> None:
    """Write matrices (target words + 1, source words [+ 1 for `</s>`]); row i is the step that predicts word i.

    None (a model without attention, a line that was left out) becomes a matrix of no rows.
    """
    matrices = [np.zeros((0, 0)) if matrix is None else matrix for matrix in matrices]
    shapes = np.array([matrix.shape for matrix in matrices], dtype=np.int32).reshape(-1, 2)
    weights = np.concatenate([np.zeros(0, np.float16), *(matrix.astype(np.float16).ravel() for matrix in matrices)])
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, weights=weights, shapes=shapes)


def read_attention(path: str | os.PathLike[str]) -> list[np.ndarray]:
    """The matrices `write_attention` wrote, in their order; float32."""
    with np.load(path, allow_pickle=False) as archive:
        weights, shapes = archive["weights"].astype(np.float32), archive["shapes"]
    ends = np.concatenate([[0], np.cumsum(shapes.prod(1))])
    if ends[-1] != len(weights):
        raise ValueError(f"{path}: found {len(weights)} weights, expected {ends[-1]} by its shapes; write it again")
    return [weights[a:b].reshape(shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
