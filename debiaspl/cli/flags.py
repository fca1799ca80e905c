"""Commands whose help shows no type after a flag: some versions of typer print ``--json <bool>``."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _WithoutTypes:
    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # that of the class beside it
        for option in found:
            if getattr(option, "is_flag", False) and option.metavar is None:
                option.metavar = ""
        return found


class PlainCommand(_WithoutTypes, TyperCommand):
    """One command."""


class PlainGroup(_WithoutTypes, TyperGroup):
    """Commands below a name."""
