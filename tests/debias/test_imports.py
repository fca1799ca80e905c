"""``debiaspl.debias`` can be lifted out: it imports torch alone."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import torch

before = set(sys.modules)
import debiaspl.debias

print(sorted(name for name in set(sys.modules) - before if not name.startswith("debiaspl.debias")))
"""


def test_debias_imports_nothing_but_torch():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['debiaspl', 'debiaspl._version']"
