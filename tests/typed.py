"""Commands as a user types them, in this process."""

from click.testing import Result
from typer.testing import CliRunner

from debiaspl.cli import app


def debiaspl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def done(*arguments: object) -> str:
    """What a command says that must succeed."""
    ran = debiaspl(*arguments)
    assert ran.exit_code == 0, ran.output
    return ran.output


def refused(*arguments: object) -> str:
    """What a command says that must fail."""
    ran = debiaspl(*arguments)
    assert ran.exit_code == 1, ran.output
    return ran.output
