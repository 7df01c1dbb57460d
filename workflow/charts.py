"""Pictures that the report draws by itself, as numbers for its SVG templates: learning curves, and the stations."""

from __future__ import annotations

import json
import math
from pathlib import Path

from nmt.files import read_lines

WIDTH, HEIGHT, LEFT, BOTTOM, EDGE = 760, 380, 46, 42, 20  # of the learning curves
POINTS = 60  # of a curve at most
STATIONS = [  # name, the rules that work there, and where it stands: column and row
    ("text", ("fetch", "extract", "generate", "join_dev"), 0, 1),
    ("prepare", ("prepare", "select_data", "known"), 1, 1),
    ("vocabulary", ("vocabulary", "coverage", "binarise"), 2, 0),
    ("dictionary", ("dictionary", "aligner_links"), 2, 2),
    ("train", ("system", "train", "companions"), 3, 0),
    ("translate", ("translate", "force"), 4, 0),
    ("replace", ("replace",), 4, 2),
    ("score", ("score", "score_alignment", "compare"), 5, 1),
    ("tables, figures", ("table", "samples", "figure", "explorer", "experiment", "report", "publish", "bundle"), 6, 1),
]
LINES = [
    ("text", "prepare"),
    ("prepare", "vocabulary"),
    ("prepare", "dictionary"),
    ("vocabulary", "train"),
    ("train", "translate"),
    ("translate", "replace"),
    ("dictionary", "replace"),
    ("translate", "score"),
    ("replace", "score"),
    ("score", "tables, figures"),
]


def read_points(path: Path) -> list[dict]:
    """The points of a curve.jsonl; ValueError if there are none."""
    points = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            points.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: expected a JSON object; train again") from error
    if not points:
        raise ValueError(f"{path}: found no points, expected a learning curve; train again")
    return points


def costs(points: list[dict]) -> list[tuple[int, float]]:
    """Mini-batches and perplexity on dev where it is known; evenly thinned to 60 points, the last one kept."""
    known = [
        (point["update"], point["dev_perplexity"])
        for point in points
        if point.get("dev_perplexity") is not None and 0 < point["dev_perplexity"] < math.inf
    ]
    step = math.ceil(len(known) / POINTS) if known else 1
    return list(reversed(known[::-1][::step]))


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """At most `most` round numbers from low to high, steps of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (power * factor) <= most)
    return [round(step * i, 10) for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def chart(curves: dict[str, list[dict]]) -> dict | None:
    """Learning curves of all systems: ln perplexity on dev against mini-batches, placed; None if there is no point."""
    series = {label: found for label, points in curves.items() if (found := costs(points))}
    if not series:
        return None
    last = max(update for found in series.values() for update, _ in found)
    logs = [math.log(value) for found in series.values() for _, value in found]
    low, high = min(logs) - 0.05, max(logs) + 0.05

    def place(update: float, cost: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - EDGE) * update / last
        return round(across, 1), round(EDGE + (HEIGHT - BOTTOM - EDGE) * (high - cost) / (high - low), 1)

    placed = [
        {
            "label": label,
            "points": [
                dict(zip("xy", place(u, math.log(v)), strict=True)) | {"batches": u, "perplexity": v} for u, v in found
            ],
        }
        for label, found in series.items()
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "floor": HEIGHT - BOTTOM,
        "right": WIDTH - EDGE,
        "across": [(place(tick, low)[0], f"{tick:,.0f}") for tick in ticks(0, last)],
        "up": [(place(0, tick)[1], f"{tick:g}") for tick in ticks(low, high)],
        "series": placed,
    }


def stations(jobs: dict[str, dict]) -> dict:
    """The way of the data, placed: stations with how many jobs ran there and for how long, and lines between them.

    jobs: for each rule, count and seconds of its jobs.
    """
    width, height, across, down = 118, 52, 136, 48
    places = {name: (6 + column * across, 6 + row * down) for name, _, column, row in STATIONS}
    boxes = []
    for name, rules, _, _ in STATIONS:
        ran = [jobs[rule] for rule in rules if rule in jobs]
        count, seconds = sum(job["count"] for job in ran), sum(job["seconds"] for job in ran)
        x, y = places[name]
        boxes.append({"name": name, "rules": rules, "x": x, "y": y, "count": count, "time": duration(seconds)})
    lines = []
    for start, end in LINES:
        (x1, y1), (x2, y2) = places[start], places[end]
        if x1 == x2:
            lines.append((x1 + width / 2, y1 + height, x2 + width / 2, y2))
        else:
            lines.append((x1 + width, y1 + height / 2, x2, y2 + height / 2))
    return {
        "width": max(x for x, _ in places.values()) + width + 6,
        "height": 2 * down + height + 12,
        "box": (width, height),
        "boxes": boxes,
        "lines": lines,
    }


def duration(seconds: float) -> str:
    """Time as people say it, with two figures or so."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:.1f} s"
