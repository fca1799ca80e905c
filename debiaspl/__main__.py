"""``python -m debiaspl`` and the command ``debiaspl``."""

import sys


def main() -> None:
    try:
        from debiaspl.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'debiaspl[cli]'")
    app()


if __name__ == "__main__":
    main()
