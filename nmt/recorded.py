"""A training step recorded as a CUDA graph, once for each shape of batch, and replayed: one launch for thousands.

A step at the paper's size holds 56 dependent time steps of a few kernels each, which a host starts more slowly than a
GPU ends them. What is recorded must not wait for the host nor depend on what it knows: `training.step` on the fast path
keeps to that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.interface import Batch
from nmt.vocab import EOS

# Lengths are padded up to a multiple of these. On news text (batches of 128 of 12,800 pairs sorted by length) about 90
# shapes occur, and 97% of the target positions are words.
SOURCE_STEP, TARGET_STEP = 4, 2
RECORDINGS = 128  # kept at a time; the one unused for longest makes room


class Recording(Protocol):
    """A step as it was recorded."""

    def replay(self) -> None:
        """Do all of it again, with what its tensors hold now."""
        ...


class Recorder(Protocol):
    """How a step is run and recorded: on a GPU `CudaRecorder`."""

    def run(self, step: Callable[[], None]) -> None:
        """Do the step."""
        ...

    def record(self, step: Callable[[], None]) -> Recording:
        """Record the step without doing it."""
        ...


class CudaRecorder:
    """CUDA graphs that share one pool of memory, as they never run side by side and hand nothing on in it."""

    def __init__(self, device: torch.device) -> None:
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)

    def run(self, step: Callable[[], None]) -> None:
        """Do the step on the stream that records: autograd remembers where it first saw a parameter."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            step()
        torch.cuda.current_stream().wait_stream(self.stream)

    def record(self, step: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Record the step as a graph; what other threads do meanwhile (batches, in page-locked memory) is let be."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
            step()
        return graph


class RecordedStep:
    """`step(batch)`, which is done for the first batch of a shape, recorded, and replayed for every later one."""

    def __init__(
        self, step: Callable[[Batch], None], device: torch.device, recorder: Recorder, limit: int = RECORDINGS
    ) -> None:
        self.step, self.device, self.recorder, self.limit = step, device, recorder, limit
        self.recordings: OrderedDict[tuple[int, ...], tuple[Batch, Recording]] = OrderedDict()

    def __call__(self, batch: Batch) -> None:
        """Do the step for a batch that lies on the host, its lengths padded up."""
        batch = padded_up(batch)
        shape = (*batch.source.shape, batch.target_input.shape[1])
        if shape in self.recordings:
            self.recordings.move_to_end(shape)
            read, recording = self.recordings[shape]
            for name, value in vars(batch).items():
                getattr(read, name).copy_(value, non_blocking=True)
            recording.replay()
            return
        read = batch.to(self.device)
        self.recorder.run(lambda: self.step(read))
        if len(self.recordings) == self.limit:
            self.recordings.popitem(last=False)
        self.recordings[shape] = read, self.recorder.record(lambda: self.step(read))


def padded_up(batch: Batch) -> Batch:
    """The batch with its sides padded to a multiple of SOURCE_STEP and TARGET_STEP; no result depends on that."""

    def pad(words: Tensor, step: int) -> Tensor:
        return F.pad(words, (0, -words.shape[1] % step), value=EOS)

    return Batch(
        pad(batch.source, SOURCE_STEP),
        batch.source_length,
        pad(batch.target_input, TARGET_STEP),
        pad(batch.target_output, TARGET_STEP),
        batch.target_length,
    )
