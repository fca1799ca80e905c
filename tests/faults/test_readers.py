"""Bad files for every reader: each is read, or refused in plain words."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.faults.__main__ import ALL
from tests.faults.readers import refused_or_read

FEW, MANY = 25, 300
"""Of each reader; always the same ones. ``make torture`` makes others every time."""


def fuzz(name: str, examples: int) -> None:
    reader = ALL[name]

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(reader.files)
    def bad_file(files):
        with tempfile.TemporaryDirectory() as folder:
            refused_or_read(reader, Path(folder), files)

    bad_file()


@pytest.mark.parametrize("name", ALL)
def test_a_bad_file_is_read_or_refused(name):
    fuzz(name, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_so_are_many_more(name):
    fuzz(name, MANY)
