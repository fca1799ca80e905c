"""Somebody with a folder of photos, a few labels and a tiny encoder, at the command line."""

SIDE = 24
CLASSES = ("china, old", "flower")


def asked(place, out, *more):
    """To train with the encoder."""
    where = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    return "train", place / "photos", *where, "--out", out, "--set", "steps=40", *more
