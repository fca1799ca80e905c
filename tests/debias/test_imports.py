"""``debiaspl.debias`` can be lifted out: it imports torch alone."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

BLOCKED = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"PIL", "safetensors", "typer", "rich", "matplotlib", "sklearn", "scipy"}:
            raise ImportError(f"blocked: {name}")

sys.meta_path.insert(0, Block())
import torch
before = set(sys.modules)
import debiaspl.debias
new = {name for name in set(sys.modules) - before if not name.startswith("debiaspl.debias")}
print(sorted(new))
"""


def test_debias_imports_nothing_but_torch():
    ran = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['debiaspl', 'debiaspl._version']"
