"""Labelling images in a browser on this machine; answers are written to labels.csv."""

from debiaspl.label.opening import open_session
from debiaspl.label.server import LabelServer

__all__ = ["LabelServer", "open_session"]
