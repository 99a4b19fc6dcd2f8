"""Freed memory is kept: asking the system for it again costs more than many a product here."""

import ctypes
from functools import cache

KEEP = {  # of glibc's mallopt
    -3: 32 << 20,  # M_MMAP_THRESHOLD: blocks up to this size, the most there is, can be kept
    -1: (1 << 31) - 1,  # M_TRIM_THRESHOLD: give none of it back
    -2: 256 << 20,  # M_TOP_PAD: ask for more at a time
}


@cache
def keep_freed_memory() -> None:
    """Tell the allocator, where it is glibc's; elsewhere nothing happens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    for parameter, value in KEEP.items():
        mallopt(parameter, value)
