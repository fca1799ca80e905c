"""What may go wrong with a file, in words for a user."""


class FileError(ValueError):
    """A file cannot be written or locked; the message says what was found, what was expected and what to do."""


class Busy(FileError):  # noqa: N818 - nothing is wrong: somebody else is at work
    """Another process holds the lock."""

    def __init__(self, message: str, process: int | None = None) -> None:
        super().__init__(message)
        self.process = process
        """Its number, where the file tells."""
