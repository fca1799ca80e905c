"""Checks quickly whether the Hugging Face hub can be reached, before a model is requested.

Without a network the hub's own client tries six times, and takes half a minute to fail.
"""

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

PATIENCE = 5.0
"""Timeout in seconds, unless HF_HUB_ETAG_TIMEOUT, the timeout of the hub's client, is longer. A lost first packet is
sent again after one and after three seconds."""


def require_hub(name_or_folder: str) -> None:
    """Raise ConnectionError if this is a name on the hub, it is not cached on this machine, and the hub cannot be
    reached. Cases that only the hub's client can handle, such as a proxy, are left to it."""
    from huggingface_hub import constants, try_to_load_from_cache

    # The cache of transformers 4, which the hub's client does not search.
    elsewhere = "TRANSFORMERS_CACHE" in os.environ
    if Path(name_or_folder).is_dir() or constants.HF_HUB_OFFLINE or elsewhere or set(getproxies()) - {"no"}:
        return
    try:
        if try_to_load_from_cache(name_or_folder, "config.json") is not None:
            return
    except ValueError:
        return  # not a valid hub name: the hub's client reports that
    place = urlsplit(constants.ENDPOINT)
    patience = max(PATIENCE, float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or 0))
    try:
        port = place.port or (80 if place.scheme == "http" else 443)
        socket.create_connection((place.hostname or "", port), timeout=patience).close()
    except OSError as error:
        reason = error.strerror or error
        raise ConnectionError(
            f"{place.hostname} cannot be reached ({reason}), and the model is not cached on this machine"
        ) from error
