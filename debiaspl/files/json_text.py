"""Parse JSON from untrusted sources."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The parsed value. Raises ValueError, also if it is nested too deep for Python."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
