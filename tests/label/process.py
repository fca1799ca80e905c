"""``debiaspl label`` as a process of its own, which can be killed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self


class Labelling:
    """Started and ready to be asked; ended with the block, however that is left."""

    def __init__(self, photos: Path, *options: str) -> None:
        command = [sys.executable, "-m", "debiaspl", "label", str(photos), "--no-browser", *options]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        assert self.process.stdout is not None
        self.said = ""
        while "Label at" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            self.said += line
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", self.said)
        assert found is not None
        self.url = found[0]

    def end(self, how: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
