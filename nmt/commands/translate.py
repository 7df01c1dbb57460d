"""`nmt translate`: lines in, translations out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.commands.console import Output, Sentences, line_blocks, require_file
from nmt.commands.options import AlignmentStep, Average, Device, Models, Quiet

if TYPE_CHECKING:
    from nmt.api import Model, Translation
    from nmt.search import Decoding

EXAMPLES = (
    "nmt translate --model MODEL < tokenised.en > translated.de",
    "nmt translate --model MODEL --tokenise --detokenise --source raw.en --output translated.de",
    "nmt translate --model A --model B --average logits --beam 12 --source test.en",
    "nmt translate --model MODEL --n-best 5 --alignments test.align --source test.en",
    "nmt translate --model MODEL --source test.en --output test.jsonl --attention test.attention.npz",
)


def translate(
    model: Models,
    source: Annotated[Path | None, typer.Option(help="Text, a sentence a line (or .gz); else standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Else standard output; a name in .jsonl means --json.")] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines instead of text.")] = False,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept; else what the model says.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations a line; over 1: `line ||| text ||| score`.")] = 1,
    unk_replacement: Annotated[
        Path | None, typer.Option(help="Dictionary for <unk>; else the model folder's dictionary.tsv.")
    ] = None,
    replace_unknown: Annotated[
        bool | None,
        typer.Option(
            "--replace-unknown/--no-replace-unknown",
            help="Replace <unk> through the attention; by default if there is a dictionary.",
        ),
    ] = None,
    alignments: Annotated[Path | None, typer.Option(help="Word links, `source-target` from 0 (Pharaoh).")] = None,
    alignment_step: AlignmentStep = None,
    attention: Annotated[Path | None, typer.Option(help="Attention matrices (.npz) of the best translations.")] = None,
    tokenise: Annotated[bool, typer.Option("--tokenise", help="The text is raw: tokenise it (sacremoses).")] = False,
    detokenise: Annotated[bool, typer.Option("--detokenise", help="Join the words as one writes them.")] = False,
    average: Average = "probabilities",
    decoding: Annotated[str, typer.Option(help="JSON of decoding keys over those of the model.")] = "{}",
    longest_line: Annotated[int, typer.Option(min=1, help="Most words of a line; memory grows with them.")] = 1000,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Translate by beam search: a line for each line, in their order; an empty line stays empty."""
    if source is not None:
        require_file(source)
    if unk_replacement is not None and replace_unknown is False:
        raise typer.BadParameter("--unk-replacement and --no-replace-unknown exclude each other")
    from nmt.api import load
    from nmt.attention_file import write_attention

    translator = load(model, device=device, average=average, dictionary=unk_replacement)
    if unk_replacement is not None:
        replace_unknown = True
    settings = search_settings(translator, decoding, beam, alignment_step)
    before, after = text_filters(translator, tokenise, detokenise)
    as_json = json_lines or (output is not None and output.suffix == ".jsonl")
    matrices: list[Any] = []
    done = 0
    with Output(output) as out, Output(alignments) if alignments else nothing() as links, Sentences(not quiet) as count:
        for lines in line_blocks(source, longest_line):
            found = translator.translate_best(
                map(before, lines), n_best, replace_unknown=replace_unknown, decoding=settings, progress=count
            )
            if as_json:
                out.write(json.dumps(record(best), ensure_ascii=False) for best in found)
            else:
                out.write(row for i, best in enumerate(found, start=done) for row in rows(i, best, n_best, after))
            if links is not None:
                links.write(pharaoh(translation) for best in found for translation in best)
            if attention is not None:
                matrices += [best[0].attention for best in found]
            done += len(lines)
    if attention is not None:
        write_attention(attention, matrices)


def search_settings(model: Model, text: str, beam: int | None, step: str | None) -> Decoding:
    """The model's own decoding settings, under those of `text` (JSON), under the options; ValueError if ill-formed."""
    from nmt.config import from_mapping
    from nmt.search import Decoding

    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f'--decoding: found {text!r}, expected JSON such as {{"beam": 5}} ({error.msg})') from error
    if not isinstance(values, dict):
        raise ValueError(f'--decoding: found {text!r}, expected a JSON object such as {{"beam": 5}}')
    options = {"beam": beam, "alignment_step": step}
    chosen = {key: value for key, value in options.items() if value is not None}
    return from_mapping(Decoding, {**vars(model.decoding), **values, **chosen}, "decoding")


def text_filters(model: Model, tokenise: bool, detokenise: bool) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """What is done to a line before and after translation."""
    from nmt.commands.moses import detokeniser, tokeniser

    source, target = model.languages if tokenise or detokenise else ("", "")
    return (tokeniser(source) if tokenise else str), (detokeniser(target) if detokenise else str)


def record(best: list[Translation]) -> dict[str, Any]:
    """The best translation as JSON; under `n_best`, where more were asked for, all of them."""
    records = [
        {
            "tokens": translation.tokens,
            "log_probability": translation.log_probability,
            "alignment": translation.alignments,
        }
        | ({} if translation.replaced is None else {"replaced": translation.replaced})
        for translation in best
    ]
    return records[0] | ({"n_best": records} if len(records) > 1 else {})


def rows(line: int, best: list[Translation], n_best: int, after: Callable[[str], str]) -> list[str]:
    """The translations of a line as text; where several are asked for, as Moses writes its n-best lists."""
    if n_best == 1:
        return [after(best[0].text)]
    return [f"{line} ||| {after(each.text)} ||| {each.log_probability:.6f}" for each in best]


def pharaoh(translation: Translation) -> str:
    """The links of a translation, by target word."""
    return " ".join(f"{source}-{target}" for source, target in translation.links)


def nothing() -> Any:
    """A context that yields None."""
    from contextlib import nullcontext

    return nullcontext()
