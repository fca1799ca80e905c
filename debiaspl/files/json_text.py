"""JSON that may come from anywhere."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """What it says. Raises ValueError, also where it is nested so deep that Python gives up."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
