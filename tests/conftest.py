"""One thread for each test process: two processes of two threads on two cores mostly wait for each other."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # also for the processes that tests start

import torch

torch.set_num_threads(1)
