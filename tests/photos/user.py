"""Somebody with a folder of photos, a few labels and a tiny encoder, at the command line."""

from tests.typed import debiaspl

SIDE = 24
CLASSES = ("china, old", "flower")


def train(place, out, *more):
    where = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    return debiaspl("train", place / "photos", *where, "--out", out, "--set", "steps=40", *more)
