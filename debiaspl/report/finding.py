"""What a page or a table says in plain words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was found, what to do next, and the part of the page that shows it."""

    fact: str
    todo: str
    part: str
    chance: float | None = None
    """How often chance alone would show as much; None where nothing is claimed that chance could make."""
