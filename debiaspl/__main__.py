"""``python -m debiaspl`` and the command ``debiaspl``."""

import sys

from debiaspl._processes import leave_current_folder


def main() -> None:
    leave_current_folder()
    try:
        from debiaspl.cli import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("the command line needs typer: pip install 'debiaspl[cli]'")
    app()


if __name__ == "__main__":
    main()
