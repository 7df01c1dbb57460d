"""Attention-based neural machine translation: use trained models, or train them."""

from __future__ import annotations

import atexit
import errno
import gc
import sys

import typer

from nmt.commands import align, info, pipeline, show, translate
from nmt.commands.options import examples
from nmt.interruption import Interrupted

CommandLineError = typer.BadParameter.mro()[2]  # the base of such errors: typer's own, or click's in an older typer
USER_ERROR = 1  # what the user can mend; 2 is a wrong command line, 75 an interrupted training, 130 Ctrl-C

EPILOG = (
    "Each command shows its options and examples with --help. MODEL is a model folder, such as "
    "results/miniature/models/base; text is tokenised, a sentence a line. Exit codes: 0 done, 1 something in the input "
    "is wrong, 2 wrong command line, 75 training was interrupted and continues with the same command."
)

HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    context_settings=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=__doc__,
    epilog=EPILOG,
)
for command, summary, lines in (
    (translate.translate, "Translate text by beam search.", translate.EXAMPLES),
    (align.align, "Align a parallel text word by word.", align.ALIGN_EXAMPLES),
    (align.score, "Say how likely given translations are.", align.SCORE_EXAMPLES),
    (show.show, "Show the attention matrix of a sentence.", show.EXAMPLES),
    (info.info, "Say what a model folder is.", info.EXAMPLES),
    (pipeline.train, "Train a system and write its model folder.", pipeline.TRAIN_EXAMPLES),
    (pipeline.evaluate, "Translate a test and read its reference, for the experiments.", pipeline.EVALUATE_EXAMPLES),
    (pipeline.force, "Read given translations, for the experiments.", pipeline.FORCE_EXAMPLES),
    (pipeline.replace, "Replace <unk>, for the experiments.", pipeline.REPLACE_EXAMPLES),
):
    app.command(short_help=summary, epilog=examples(*lines), no_args_is_help=True, context_settings=HELP)(command)


def run(arguments: list[str] | None = None) -> int:
    """Run a command line (None: the process's own) and return its exit code; errors are a line on standard error."""
    try:
        return typer.main.get_command(app).main(arguments, standalone_mode=False) or 0
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return stop.code
    except CommandLineError as error:
        print(usage_error(error), file=sys.stderr)
        return error.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        advice = "; is the path right?" if error.errno == errno.ENOENT else ""
        print(f"error: {where}{error.strerror or error}{advice}", file=sys.stderr)
    except ValueError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's, which may not be loaded
            raise
        print("error: the GPU's memory is too small: lower --beam, or use --device cpu", file=sys.stderr)
    return USER_ERROR


def usage_error(error: CommandLineError) -> str:
    """What is wrong with the command line, and where the right one is described; without arguments, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":  # of a module of typer's own
        return error.message
    context = getattr(error, "ctx", None)
    hint = f"; see `{context.command_path} --help`" if context else ""
    return f"error: {error.format_message().rstrip('.')}{hint}"


def main() -> None:
    """The `nmt` command."""
    atexit.register(gc.freeze)  # else Python at its end looks for garbage among all that torch has loaded: 0.7 s
    sys.exit(run())


if __name__ == "__main__":
    main()
