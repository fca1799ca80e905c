"""One thread for each test process unless asked otherwise: two processes of two threads on two cores mostly wait for
each other. ``tiers.py`` holds the two tiers, ``skipped.py`` says what was skipped."""

import gc
import os
import signal
import threading

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the processes that tests start
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # two threads that wait for each other leave the core to others

import torch

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

pytest_plugins = ["tests.tiers", "tests.skipped"]

# Where a shell starts the tests in the background, SIGINT is ignored, and would be in all that they start and stop with
# it; elsewhere it may be blocked. A handler of our own is not handed on: what is started has the usual one again.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def pytest_collection_finish() -> None:
    """Five thousand tests and all of torch stay until the end: nobody need look through them for what can be freed."""
    gc.freeze()
