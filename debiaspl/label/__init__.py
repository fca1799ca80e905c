"""Labelling images in a browser on this machine, straight into labels.csv."""

from debiaspl.label.opening import open_session
from debiaspl.label.server import LabelServer

__all__ = ["LabelServer", "open_session"]
