"""Make text from untrusted files safe to print on a terminal."""


def printable(text: str) -> str:
    """Return the text on one line, with control characters, direction marks and undecodable bytes replaced."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
