"""Handwritten digits of scikit-learn: a small version of the paper's experiment, in seconds on a CPU.

debiaspl train --recipe digits-10
"""

from dataclasses import replace

from debiaspl.training import Choice, Recipe

ONE_LABEL = Recipe(
    name="digits-10",
    about="digits, balanced, one label a class: DebiasPL",
    cost="~10 s on one core",
    data="digits",
    protocol=Choice("few-labels", {"per_class": 1}),
    network=Choice("small"),
    algorithm=Choice("fixmatch", {"joint": False}),
    correction=Choice("debiaser"),
    flip=False,
    steps=600,
    labeled_batch=32,
    unlabeled_batch=96,
    learning_rate=0.2,
    average_decay=0.99,
    average_statistics=True,
    log_every=25,
    checkpoint_every=100,
)

LONG_TAIL = replace(
    ONE_LABEL,
    name="digits-lt20-10pct",
    about="digits, long-tailed 20 to 1, 10 % labeled: DebiasPL",
    protocol=Choice("long-tail", {"gamma": 20.0, "labeled_fraction": 0.1}),
)

RECIPES = (ONE_LABEL, LONG_TAIL)
