"""Atomic file writes, locks and digests. Imports only the standard library, so every other package can use it."""

from debiaspl.files.overwrite import replacing
from debiaspl.files.text import guarded, parse_json, unguarded
from debiaspl.files.whole import (
    Busy,
    FileError,
    digest_if_there,
    digest_of_file,
    exists_already,
    locked,
    open_own,
    put_in_place,
    refuse_existing,
    refuse_missing_folder,
    remove_leftovers,
    try_lock,
    write_bytes,
    write_json,
    write_text,
    write_whole,
)
