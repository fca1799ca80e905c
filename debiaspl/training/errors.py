"""What a run may stop with, in words for its user."""


class RunError(RuntimeError):
    """A run cannot start or go on; the message says what was found, what was expected and what to do."""


class Interrupted(RunError):  # noqa: N818 - not an error of the run: it was asked to stop, and has saved its state
    """The run was asked to stop (Ctrl-C or SIGTERM), saved its state and left."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (str(self), self.signal)  # so that it crosses from a worker process to its parent
