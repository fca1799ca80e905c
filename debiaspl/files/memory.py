"""How much memory is free. Untrusted files may claim, or unpack to, any size."""

import os
import re
from contextlib import suppress
from pathlib import Path

SHARE = 0.8
"""Share of the free memory that one object may use."""
_CGROUP = Path("/sys/fs/cgroup")


def free_memory() -> int:
    """Bytes that this process can still use: free on the machine, in its container, or below its own limit."""
    found = [_of_machine(), _of_container(_CGROUP), _of_process()]
    return max(min(amount for amount in found if amount is not None), 0)


def fits(size: float) -> bool:
    """Whether so many bytes fit and leave some memory for other programs."""
    return size <= SHARE * free_memory()


def gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 5e7 else f"{size / 1e6:,.1f} MB"


def lack_of(size: float) -> str:
    """The middle of a message."""
    return f"{gigabytes(size)} of memory, but only {gigabytes(free_memory())} are free"


def _of_machine() -> int:
    with suppress(OSError):
        if found := re.search(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text()):
            return 1024 * int(found[1])
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return 4 * 2**30  # a system that does not report it


def _of_container(folder: Path) -> int | None:
    with suppress(OSError, ValueError):
        limit = int((folder / "memory.max").read_text())  # "max" means no limit
        used = int((folder / "memory.current").read_text())
        kept = re.search(r"inactive_file (\d+)", (folder / "memory.stat").read_text())
        return limit - used + int(kept[1] if kept else 0)
    return None


def _of_process() -> int | None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            return limit - used
    return None
