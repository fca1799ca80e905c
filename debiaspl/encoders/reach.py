"""One quick question before the Hugging Face hub is asked for a model: does anybody answer there?

Without a network the hub's own client tries six times, and half a minute passes before its error.
"""

import os
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

PATIENCE = 5.0
"""Seconds for an answer, unless HF_HUB_ETAG_TIMEOUT, which the hub's client waits by, is longer. A first packet that is
lost twice is sent again after one and after three seconds."""


def require_hub(name_or_folder: str) -> None:
    """Raise ConnectionError if this is a name on the hub, nothing of it is kept on this machine, and the hub cannot be
    reached. What only the hub's client can know, behind a proxy for one, is left to it."""
    from huggingface_hub import constants, try_to_load_from_cache

    # Where transformers 4 keeps them, and the hub's client does not look.
    elsewhere = "TRANSFORMERS_CACHE" in os.environ
    if Path(name_or_folder).is_dir() or constants.HF_HUB_OFFLINE or elsewhere or set(getproxies()) - {"no"}:
        return
    try:
        if try_to_load_from_cache(name_or_folder, "config.json") is not None:
            return
    except ValueError:
        return  # no name that the hub could have: its client has words for that
    place = urlsplit(constants.ENDPOINT)
    if place.hostname is not None:
        patience = max(PATIENCE, float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or 0))
        _connect(place.hostname, place.port or (80 if place.scheme == "http" else 443), patience)


def _connect(host: str, port: int, patience: float) -> None:
    """Twice, a second apart: a network that is just coming up deserves it."""
    reason = f"no answer within {patience:g} s"
    answered = threading.Event()

    def ask() -> None:
        nonlocal reason
        for wait in (0, 1):
            time.sleep(wait)
            try:
                socket.create_connection((host, port), timeout=patience).close()
            except OSError as error:
                reason = error.strerror or str(error)
            else:
                answered.set()
                return

    # A thread of its own, which nobody waits for: to look a name up may take longer than any limit.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(patience)
    if not answered.is_set():
        raise ConnectionError(f"{host} cannot be reached ({reason}), and the model is not kept on this machine")
