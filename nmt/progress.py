"""How work goes: a moving line on a terminal, plain lines in a log, a status for whoever runs several at once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

STATUS_FOLDER = "NMT_STATUS_FOLDER"  # the environment variable that asks for statuses
SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 1.0, 30.0


def clock(seconds: float) -> str:
    """Seconds as 0:41 or 1:02:03."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


class Pace:
    """Says when a line is due again, and how fast things went since the last one."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Leave the time until now out of account."""
        self.since, self.count = time.perf_counter(), 0

    def rate(self, count: int) -> float | None:
        """After `count` more: how many a second since the last line if another is due, else None."""
        self.count += count
        passed = time.perf_counter() - self.since
        if passed < self.seconds:
            return None
        rate = self.count / passed
        self.restart()
        return rate


class Status:
    """A line on what this process does, in a file of the folder that STATUS_FOLDER names; without one, nothing.

    The file holds `label`, a tab and the text; it is gone when the work is done (see workflow/live.py, which shows it).
    """

    def __init__(self, label: str, text: str = "begins") -> None:
        folder = os.environ.get(STATUS_FOLDER, "")
        wanted = bool(label and folder) and Path(folder).is_dir()  # it is another machine's in a cluster's job
        self.path = Path(folder, str(os.getpid())) if wanted else None
        self.label = label
        self(text)

    def __bool__(self) -> bool:
        return self.path is not None

    def __call__(self, text: str) -> None:
        """Say this from now on."""
        if self.path is not None:
            self.path.write_text(f"{self.label}\t{text}\n", encoding="utf-8")

    def close(self) -> None:
        """Say nothing any more."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Progress:
    """Shows update, words/s, cost (negative log-likelihood a target word), dev perplexity and time left.

    total, done: updates of the whole run and those before this process began. label: what a status calls the run.
    scalars: a folder for TensorBoard (ValueError without its package).
    """

    def __init__(
        self,
        total: int,
        done: int,
        shown: bool = True,
        label: str = "",
        scalars: Path | None = None,
        stream: TextIO | None = None,
    ) -> None:
        from tqdm import tqdm

        self.stream = stream or sys.stderr
        self.total, self.first, self.shown = total, done, shown
        terminal = shown and self.stream.isatty()
        self.writer = scalar_writer(scalars, done) if scalars else None
        self.status = Status(label)
        self.line = tqdm(total=total, initial=done, file=self.stream, unit="update", disable=not terminal)
        self.log = Pace(SECONDS_ON_TERMINAL if terminal else SECONDS_IN_LOG)
        self.live = Pace(SECONDS_ON_TERMINAL)
        self.dev = ""
        self.started = time.perf_counter()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()
        self.status.close()
        if self.writer is not None:
            self.writer.close()

    def trained(self, update: int, words: int, cost: Callable[[], float]) -> None:
        """After an update on `words` target words; `cost` is asked for only when it is to be shown."""
        rate = self.log.rate(words)
        if rate is not None and (self.shown or self.writer):
            self.show(update, rate, cost())
        rate = self.live.rate(words) if self.status else None
        if rate is not None:
            done = f"{update / self.total:4.0%}  update {update:,} of {self.total:,}  {self.left(update)} left"
            self.status(f"{done}  {rate:,.0f} words/s  cost {cost():.3f}{self.dev and '  ' + self.dev}")

    def show(self, update: int, rate: float, cost: float) -> None:
        """A line in the log, or the moving line of a terminal; the scalars."""
        text = f"{rate:,.0f} words/s, cost {cost:.3f}{self.dev and ', ' + self.dev}"
        if self.line.disable:
            self.say(f"update {update:,} of {self.total:,}, {text}, {self.left(update)} left")
        else:
            self.line.set_postfix_str(text, refresh=False)
            self.line.update(update - self.line.n)
        if self.writer is not None:
            self.writer.add_scalar("cost/train", cost, update)

    def left(self, update: int) -> str:
        """The time that the other updates will take at the pace so far."""
        return clock((time.perf_counter() - self.started) / (update - self.first) * (self.total - update))

    def evaluated(self, record: dict[str, float], best: bool) -> None:
        """After an evaluation, with its record of the learning curve."""
        self.dev = f"dev perplexity {record['dev_perplexity']:.2f}"
        self.say(
            f"epoch {record['epoch']}, update {record['update']:,}: dev perplexity {record['dev_perplexity']:.3f}"
            f"{' (best so far)' if best else ''}, train {record['train_perplexity']:.3f}, "
            f"learning rate {record['learning_rate']:.4g}, {record['words_per_second']:,.0f} words/s, "
            f"gradient norm {record['gradient_norm']:.2f}, {record['seconds']:.0f} s"
        )
        if self.writer is not None:
            for key, tag in SCALARS.items():
                if record.get(key) is not None:
                    self.writer.add_scalar(tag, record[key], record["update"])
            self.writer.flush()
        self.log.restart()
        self.live.restart()

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.shown:
            self.line.write(text, file=self.stream)
            self.stream.flush()


SCALARS = {  # of the learning curve's record: TensorBoard's tag
    "dev_perplexity": "perplexity/dev",
    "curve_perplexity": "perplexity/test",
    "train_perplexity": "perplexity/train",
    "learning_rate": "optimiser/learning_rate",
    "gradient_norm": "optimiser/gradient_norm",
    "words_per_second": "speed/words_per_second",
}


def scalar_writer(folder: Path, done: int) -> SummaryWriter:
    """TensorBoard's writer, which forgets what an earlier run wrote of updates after `done`; ValueError without it."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            f"{folder}: found no package to write TensorBoard's scalars with ({error}); "
            "pip install tensorboard, or do without: tensorboard: false in the experiment, no --tensorboard"
        ) from error
    return SummaryWriter(folder, purge_step=done + 1)
