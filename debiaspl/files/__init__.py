"""Atomic file writes, locks and digests. Imports only the standard library, so every other package can use it."""

from debiaspl.files.overwrite import replacing as replacing
from debiaspl.files.text import guarded as guarded, parse_json as parse_json, unguarded as unguarded
from debiaspl.files.whole import (
    Busy as Busy,
    FileError as FileError,
    digest_if_there as digest_if_there,
    digest_of_file as digest_of_file,
    locked as locked,
    open_own as open_own,
    put_in_place as put_in_place,
    refuse_existing as refuse_existing,
    refuse_missing_folder as refuse_missing_folder,
    remove_leftovers as remove_leftovers,
    try_lock as try_lock,
    write_bytes as write_bytes,
    write_json as write_json,
    write_text as write_text,
    write_whole as write_whole,
)
