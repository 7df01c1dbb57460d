"""How far a long piece of work has come: a moving bar on a terminal, a plain line each tenth in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from tqdm import tqdm

from nmt.progress import SECONDS_ON_TERMINAL, Pace, Status


@contextmanager
def bytes_done(name: str, total: int, done: int = 0, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with how many bytes were done since the last call.

    total: bytes of the whole, 0 if not known; done: those of an earlier run. Where the pipeline asks for it, what is
    shown also becomes the job's status.
    """
    terminal = sys.stderr.isatty()
    bar = tqdm(
        desc=name, total=total or None, initial=done, unit="B", unit_scale=True, disable=not (shown and terminal)
    )
    pace = Pace(SECONDS_ON_TERMINAL)
    told = done * 10 // (total or 1)

    def advance(count: int) -> None:
        nonlocal done, told
        done += count
        bar.update(count)
        rate = pace.rate(count)
        text = f"{done / 1e6:.1f} of {total / 1e6:.1f} MB" if total else f"{done / 1e6:.1f} MB"
        if rate is not None:
            status(f"{text}, {rate / 1e6:.1f} MB/s")
        if shown and not terminal and total and done * 10 // total > told:
            told = done * 10 // total
            print(f"{name}: {text}", file=sys.stderr, flush=True)

    with bar, closing(Status(name)) as status:
        yield advance
