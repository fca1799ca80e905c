"""Write an algorithm of your own
================================

An algorithm turns a batch of views into named losses. This one has no threshold: it keeps a pseudo-label where two weak
views of the image agree. It works with every correction, and its arguments are settings of the recipe. Prints the
accuracy on 500 test digits of FixMatch with the Debiaser, and of this one without and with it; ten labels, one seed and
100 steps are too few to rank methods. Takes about 6 seconds on one core. From the command line, over three seeds:

    debiaspl compare --methods fixmatch,examples/own_algorithm.py:Agreement
"""

import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl import Algorithm, Correction, recipe, train
from debiaspl.algorithms import Batch, Models, Views
from debiaspl.training import parse_settings


class Agreement(Algorithm):
    """Keeps the pseudo-labels that two weak views agree on.

    Args:
        correction: what is done against the bias of the pseudo-labels.
        weight: of the unlabeled loss.
    """

    views = Views(weak=2, strong=1)

    def __init__(self, correction: Correction | None = None, weight: float = 1.0) -> None:
        super().__init__(correction)
        self.weight = weight

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():
            weak = models.teacher(torch.cat(batch.weak))
        label, other = self.correction(weak).argmax(-1).chunk(2)
        keep = label == other

        labels, (strong,) = batch.labels, batch.strong
        own, unlabeled = models.student(torch.cat((batch.labeled, strong))).split([len(labels), len(strong)])
        loss = F.cross_entropy(self.correction.margin(unlabeled, label), label, reduction="none") * keep
        self.report(kept=keep, pseudo_label=label)  # these are in the log and in the report of the run
        return {
            "labeled": F.cross_entropy(self.correction.labeled_margin(own, labels), labels),
            "unlabeled": self.weight * loss.mean(),
        }


if __name__ == "__main__":
    here = f"{__file__}:Agreement"
    for algorithm, correction in (("fixmatch", "debiaser"), (here, "none"), (here, "debiaser")):
        changes = [f"algorithm={algorithm}", f"correction={correction}", "steps=100", "width=8", "average_decay=0.9"]
        settings = parse_settings(recipe("digits-10"), changes, load_files=True)
        with tempfile.TemporaryDirectory() as folder:
            results = train(settings, Path(folder) / "run")
        name = algorithm.rpartition(":")[2]
        print(f"{name:9} with correction {correction:8} accuracy {100 * results['accuracy']:.1f} %")
    print("One seed and 100 steps show how it is done, not which is better.")
