"""``python -m debiaspl`` and the command ``debiaspl``."""

import sys


def main() -> None:
    try:
        from debiaspl._processes import keep_freed_memory, leave_current_folder

        leave_current_folder()
        keep_freed_memory()
        try:
            from debiaspl.cli import app
        except ModuleNotFoundError as error:
            if error.name != "typer":
                raise
            sys.exit("The command line needs typer. Install it: pip install 'debiaspl[cli]'")
        app()
    except KeyboardInterrupt:
        # Until the command's modules are imported, no other handler catches Ctrl-C: here nothing is imported before.
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
    except Exception:
        import traceback

        from debiaspl.cli.terminal import say

        say(traceback.format_exc(), err=True)
        say("error: unexpected. Please report this, unless it comes from a file of your own.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
