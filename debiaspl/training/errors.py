"""Errors of runs, with messages for users."""


class RunError(RuntimeError):
    """A run cannot start or continue; the message says what was found, what was expected and what to do."""


class Interrupted(RunError):  # noqa: N818 - not an error of the run: it was stopped and has saved its state
    """The run was stopped (Ctrl-C or SIGTERM) and has saved its state."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (str(self), self.signal)  # so that a worker process can send it to its parent
