"""Write a correction of your own
================================

A correction stands between the predictions of unlabeled images and the pseudo-labels. This one subtracts the running
mean of the logits, as DINO does (Caron et al., 2021). It works with every algorithm, and its arguments are settings of
the recipe. Prints the accuracy on 500 test digits of FixMatch without a correction, with the Debiaser and with this
one; ten labels, one seed and 100 steps are too few to rank methods. Takes about 6 seconds on one core. From the command
line, over three seeds:

    debiaspl compare --methods fixmatch,debiaspl,fixmatch+examples/own_correction.py:Centred
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from debiaspl import Correction, recipe, train
from debiaspl.training import parse_settings


class Centred(Correction):
    """Pseudo-labels from logits less their running mean.

    Args:
        num_classes: given by the run.
        momentum: how slowly the mean follows the model.
    """

    centre: Tensor

    def __init__(self, num_classes: int, momentum: float = 0.9) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("centre", torch.zeros(num_classes))  # a buffer is saved and resumed with the run

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        """What pseudo-labels are taken from; nothing is learned here."""
        return super().probabilities(weak_logits - self.centre)

    def learn(self, weak_logits: Tensor) -> None:
        """Called once a step with the raw logits of the weak views."""
        self.centre.lerp_(weak_logits.detach().float().mean(0), 1 - self.momentum)


if __name__ == "__main__":
    for correction in "none", "debiaser", f"{__file__}:Centred":
        changes = [f"correction={correction}", "steps=100", "width=8", "average_decay=0.9"]
        settings = parse_settings(recipe("digits-10"), changes, load_files=True)
        with tempfile.TemporaryDirectory() as folder:
            results = train(settings, Path(folder) / "run")
        name = correction.rpartition(":")[2]
        print(f"{name:8} accuracy {100 * results['accuracy']:.1f} %")
    print("One seed and 100 steps show how it is done, not which is better.")
