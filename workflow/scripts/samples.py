"""Sample translations chosen by a stated rule (Table 5 of Luong et al. 2015)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from nmt.files import atomic_path, read_lines, write_json, write_text
from workflow.cli import run
from workflow.scoring import read_parallel
from workflow.tables import latex_escape

UNKNOWN = "<unk>"
NEGATIONS = {
    "en": {"not", "n't", "no", "never", "none", "nothing", "nobody", "nor", "cannot"},
    "de": {"nicht", "kein", "keine", "keinen", "keinem", "keiner", "keines", "nie", "niemals", "nichts", "niemand"},
    "fr": {"ne", "n'", "pas", "jamais", "aucun", "aucune", "rien", "personne"},
}
RULES = {  # each sort of sentence, in the order in which they are taken
    "examples": "those that the paper prints, where the test set has them",
    "names": "{names} whose best output holds most unknown words (at most 30 source words)",
    "negations": "{negations} with most negations",
    "longest": "the {longest} longest sources",
    "others": "{others} drawn at random (seed {seed})",
}


def rule(sizes: dict[str, int], examples: list[str], seed: int) -> str:
    """How the sentences are chosen, in words."""
    counts = {"examples": len(examples)} | sizes
    sorts = [text.format(**sizes, seed=seed) for name, text in RULES.items() if counts[name]]
    chosen = f"Chosen by rule, each sentence once, the first of equals: {'; '.join(sorts)}."
    return (
        f"{chosen.replace('the 1 longest sources', 'the longest source')} Unknown words, replaced or not, are marked."
    )


def choose(
    source: list[str], best: list[str], language: str, seed: int, sizes: dict[str, int], examples: Sequence[str] = ()
) -> list[tuple[str, int]]:
    """(reason, line) of the sentences that the rule picks; lines from 0, empty sources never.

    examples: parts of sentences, spaces aside; the first line that holds one is chosen, if there is any.
    """
    words = [line.split() for line in source]
    left = [i for i, line in enumerate(words) if line]
    chosen: list[tuple[str, int]] = []

    def take(reason: str, count: int, score) -> None:
        fitting = sorted((i for i in left if score(i) > 0), key=lambda i: (-score(i), i))[:count]
        chosen.extend((reason, i) for i in fitting)
        for i in fitting:
            left.remove(i)

    for example in ("".join(text.split()) for text in examples):
        take("printed in the paper", 1, lambda i, example=example: example in "".join(words[i]))
    negations = NEGATIONS.get(language, set())
    take("unknown words", sizes["names"], lambda i: best[i].split().count(UNKNOWN) * (len(words[i]) <= 30))
    take("negation", sizes["negations"], lambda i: sum(word.lower() in negations for word in words[i]))
    take("longest", sizes["longest"], lambda i: len(words[i]))
    drawn = random.Random(seed).sample(left, min(sizes["others"], len(left)))
    return chosen + [("random", i) for i in sorted(drawn)]


def mark(raw: str, replaced: str | None) -> list[dict]:
    """The printed words of an output; those that stand for an unknown word carry `unknown: true`."""
    shown = (replaced if replaced is not None else raw).split()
    was = raw.split()
    if len(shown) != len(was):
        raise ValueError(f"replacement changed the number of words, from {len(was)} ({raw!r}) to {len(shown)}")
    return [{"word": new, "unknown": old == UNKNOWN} for old, new in zip(was, shown, strict=True)]


def plain(words: list[dict]) -> str:
    """Words as one line, unknown ones in ⟦⟧."""
    return " ".join(f"⟦{w['word']}⟧" if w["unknown"] else w["word"] for w in words)


def latex(samples: list[dict], title: str, caption: str) -> str:
    """A LaTeX table, a block a sentence; replaced unknown words are underlined."""
    heading = f"\\caption{{{latex_escape(title)}. {latex_escape(caption)}}}"
    lines = ["% needs \\usepackage{booktabs} and UTF-8 input", "\\begin{table}", heading]
    lines += ["\\begin{tabular}{lp{0.85\\linewidth}}", "\\toprule"]
    for sample in samples:
        texts = [("source", latex_escape(sample["source"])), ("reference", latex_escape(sample["reference"]))]
        for output in sample["outputs"]:
            words = [(latex_escape(w["word"]), w["unknown"]) for w in output["words"]]
            line = " ".join(f"\\underline{{{word}}}" if unknown else word for word, unknown in words)
            texts.append((latex_escape(output["label"]), line))
        lines += [f"{name} & {text} \\\\" for name, text in texts] + ["\\midrule"]
    lines[-1] = "\\bottomrule"
    return "\n".join([*lines, "\\end{tabular}", "\\end{table}", ""])


def main(
    source: Annotated[Path, typer.Option(help="Tokenised source.")],
    reference: Annotated[Path, typer.Option(help="Tokenised reference.")],
    best: Annotated[Path, typer.Option(help="Output of the best system, <unk> as it is.")],
    base: Annotated[Path, typer.Option(help="Output of the base system, <unk> as it is.")],
    language: Annotated[str, typer.Option(help="Source language, for its negations.")],
    output: Annotated[Path, typer.Option(help="Path without ending; .csv, .md, .tex and .json are written.")],
    best_replaced: Annotated[Path | None, typer.Option(help="The best system's output after replacement.")] = None,
    base_replaced: Annotated[Path | None, typer.Option(help="The base system's output after replacement.")] = None,
    best_label: Annotated[str, typer.Option(help="What to call the best system.")] = "best",
    base_label: Annotated[str, typer.Option(help="What to call the base system.")] = "base",
    names: Annotated[int, typer.Option(min=0, help="Sentences with unknown words.")] = 2,
    negations: Annotated[int, typer.Option(min=0, help="Sentences with negations.")] = 2,
    longest: Annotated[int, typer.Option(min=0, help="Longest sentences.")] = 1,
    example: Annotated[
        list[str] | None, typer.Option(help="Part of a sentence to show if it is there; repeat.")
    ] = None,
    others: Annotated[int, typer.Option(min=0, help="Sentences drawn at random.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the random ones.")] = 12345,
    title: Annotated[str, typer.Option(help="Title of the table.")] = "Sample translations",
    caption: Annotated[str, typer.Option(help="What goes before the rule in the caption.")] = "",
    note: Annotated[str, typer.Option(help="A sentence for the caption: what ours was trained on.")] = "",
) -> None:
    """Write sample translations by two systems, side by side."""
    sources = read_lines(source)
    files = (reference, best, base, best_replaced, base_replaced)
    references, *texts = (read_parallel(path, len(sources), source) if path else None for path in files)
    sizes = {"names": names, "negations": negations, "longest": longest, "others": others}
    chosen_by = rule(sizes, example or [], seed)
    caption = " ".join(f"{part.rstrip('. ')}." for part in (caption, chosen_by, note) if part)
    samples = []
    for reason, i in choose(sources, texts[0], language, seed, sizes, example or []):
        outputs = [
            {"label": label, "words": mark(raw[i], replaced[i] if replaced else None)}
            for label, raw, replaced in ((best_label, texts[0], texts[2]), (base_label, texts[1], texts[3]))
        ]
        samples.append(
            {"line": i + 1, "reason": reason, "source": sources[i], "reference": references[i], "outputs": outputs}
        )
    identity = ("line", "reason", "source", "reference")
    rows = [{k: s[k] for k in identity} | {o["label"]: plain(o["words"]) for o in s["outputs"]} for s in samples]
    with atomic_path(output.with_name(output.name + ".csv")) as path:
        pd.DataFrame(rows).to_csv(path, index=False, lineterminator="\n")
    blocks = ["\n".join(f"- **{name}**: {text}" for name, text in row.items()) for row in rows]
    write_text(output.with_name(output.name + ".md"), f"**{title}.** {caption}\n\n" + "\n\n".join(blocks) + "\n")
    write_text(output.with_name(output.name + ".tex"), latex(samples, title, caption))
    about = {"kind": "samples", "name": output.name, "title": title, "caption": caption, "samples": samples}
    write_json(output.with_name(output.name + ".json"), about)


if __name__ == "__main__":
    run(main)
