"""How training goes: one moving line on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from tqdm import tqdm

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 1.0, 30.0


class Progress:
    """Shows update, words/s, cost (negative log-likelihood a target word), dev perplexity and time left.

    total, done: updates of the whole run and those before this process began.
    """

    def __init__(self, total: int, done: int, shown: bool = True, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.total, self.shown = total, shown
        terminal = self.stream.isatty()
        self.every = SECONDS_ON_TERMINAL if terminal else SECONDS_IN_LOG
        self.line = tqdm(total=total, initial=done, file=self.stream, unit="update", disable=not (shown and terminal))
        self.dev = ""
        self.started = self.last = time.perf_counter()
        self.first = done
        self.words = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()

    def trained(self, update: int, words: int, cost: Callable[[], float]) -> None:
        """After an update on `words` target words; `cost` is asked for only when it is to be shown."""
        self.words += words
        now = time.perf_counter()
        if not self.shown or now - self.last < self.every:
            return
        text = f"{self.words / (now - self.last):,.0f} words/s, cost {cost():.3f}{self.dev}"
        if self.line.disable:
            left = (now - self.started) / (update - self.first) * (self.total - update)
            self.say(f"update {update:,} of {self.total:,}, {text}, {left / 60:.0f} min left")
        else:
            self.line.set_postfix_str(text, refresh=False)
            self.line.update(update - self.line.n)
        self.last, self.words = now, 0

    def evaluated(self, record: dict[str, float], best: bool) -> None:
        """After an evaluation, with its record of the learning curve."""
        self.dev = f", dev perplexity {record['dev_perplexity']:.2f}"
        self.say(
            f"epoch {record['epoch']}, update {record['update']:,}: dev perplexity {record['dev_perplexity']:.3f}"
            f"{' (best so far)' if best else ''}, train {record['train_perplexity']:.3f}, "
            f"learning rate {record['learning_rate']:.4g}, {record['words_per_second']:,.0f} words/s, "
            f"gradient norm {record['gradient_norm']:.2f}, {record['seconds']:.0f} s"
        )
        self.last, self.words = time.perf_counter(), 0

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.shown:
            self.line.write(text, file=self.stream)
            self.stream.flush()
