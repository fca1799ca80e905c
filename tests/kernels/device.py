"""Where kernels are tested: on a GPU, or, with TRITON_INTERPRET=1 and Triton installed, slowly on a CPU."""

import os
from importlib.util import find_spec

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None
DEVICE = torch.device("cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu")

needs_triton = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (torch.cuda.is_available() or INTERPRETED), reason="no CUDA device"),
]
