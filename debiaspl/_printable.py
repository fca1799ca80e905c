"""Text from untrusted files on a terminal."""


def printable(text: str) -> str:
    """In one line: what would move the cursor, turn the direction of writing or cannot be encoded becomes a mark."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
