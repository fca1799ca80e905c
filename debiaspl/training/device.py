"""Where to compute."""

import torch

from debiaspl.training.errors import RunError


def find_device(name: str | None) -> torch.device:
    """``cuda`` if there is one, else ``cpu``, unless named."""
    found = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" != found:
        raise RunError("the device is 'cuda', but PyTorch finds a CPU here and no GPU.")
    if name is not None and name not in ("cpu", found):
        raise RunError(f"the device is {name!r}, expected cuda or cpu, and PyTorch finds a {found.upper()} here.")
    return torch.device(name or found)
