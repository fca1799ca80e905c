"""One labelling session per table."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from debiaspl.files import Busy
from debiaspl.files import locked as lock_file
from debiaspl.training.errors import RunError


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Keep other sessions off this table."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(table.with_name(f".{table.name}.lock")))
        except Busy as error:
            by = f" by process {error.process}" if error.process else ""
            raise RunError(
                f"{table} is being labelled already{by}. "
                "Go on in its page, or end it with Ctrl-C; or label into another table: --labels."
            ) from error
        except OSError as error:
            raise RunError(
                f"could not write beside {table}: {error.strerror}. "
                "Choose a place for the labels that can be written: --labels."
            ) from error
        yield
