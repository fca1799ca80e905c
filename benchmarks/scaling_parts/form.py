"""How numbers become a table of the page."""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def span(low: float, high: float, form: str = ",.0f") -> str:
    """Two ends, the smaller first; one number where they print alike."""
    first, second = (f"{value:{form}}" for value in sorted((low, high)))
    return first if first == second else f"{first} to {second}"


def kilobytes(size: float) -> str:
    return f"{size / 1e3:,.2f}" if 0 < size < 1e4 else f"{size / 1e3:,.0f}"
