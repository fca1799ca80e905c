"""Somebody with a folder of photos, a few labels and a tiny encoder, at the command line."""

from typer.testing import CliRunner

from debiaspl.cli import app

SIDE = 24
PER_CLASS = 15
CLASSES = ("china, old", "flower")


def debiaspl(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def train(place, out, *more):
    where = "--labels", place / "labels.csv", "--encoder", place / "encoder", "--device", "cpu"
    return debiaspl("train", place / "photos", *where, "--out", out, "--set", "steps=40", *more)
