"""Debias pseudo-labels in a plain PyTorch loop
===============================================

FixMatch on 1,797 handwritten digits with ten labels, one of each class. The ``Debiaser`` adds three lines to the loop.
Prints, without and with it, the accuracy of three seeds and the shares of the classes in the predictions, the largest
first; in truth every class has about 10 %. Takes about 10 seconds on one core.
"""

# %%
# The digits that come with scikit-learn, and two views of them: a shifted one, and one changed a lot.

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from debiaspl import Debiaser
from debiaspl.augment import RandAugment, Weak

digits = load_digits()
images = torch.tensor(digits.images * 255 / 16).to(torch.uint8).unsqueeze(1)  # (1797, 1, 8, 8)
truth = torch.tensor(digits.target)
weaken, strengthen = Weak(flip=False), RandAugment.fixmatch()


def prepared(batch: Tensor) -> Tensor:
    return batch.float() / 127.5 - 1


# %%
# The loop; its three new lines are numbered. With a strength of 0 it is FixMatch; 0.5 is the paper's.


def train(strength: float, seed: int, steps: int = 150) -> Tensor:
    """A predicted class for every image, after training with the labels of ten of them."""
    torch.manual_seed(seed)
    order = torch.randperm(len(images))
    labeled = torch.stack([order[truth[order] == number][0] for number in range(10)])
    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1, stride=2)
    layers = first, nn.BatchNorm2d(16), nn.ReLU(), second, nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(512, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    debias = Debiaser(num_classes=10, strength=strength)  # 1
    for _ in range(steps):
        unlabeled = images[torch.randint(len(images), (64,))]
        with torch.no_grad():
            confidence, label = debias(model(prepared(weaken(unlabeled)))).max(-1)  # 2
        logits = model(prepared(torch.cat((weaken(images[labeled]), strengthen(weaken(unlabeled))))))
        loss = F.cross_entropy(debias.margin(logits[10:]), label, reduction="none")  # 3
        loss = (loss * (confidence >= 0.95)).mean() + F.cross_entropy(logits[:10], truth[labeled])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return torch.argmax(model.eval()(prepared(images)), -1)


# %%
# What debiasing changed: more digits are recognised, and no class is predicted as often as before.

shares: dict[str, list[float]] = {}
for name, strength in {"FixMatch": 0.0, "with the Debiaser": 0.5}.items():
    predicted = [train(strength, seed) for seed in range(3)]
    accuracy = torch.stack([100 * (classes == truth).float().mean() for classes in predicted])
    counts = torch.stack([classes.bincount(minlength=10).sort(descending=True).values for classes in predicted])
    shares[name] = (counts / len(images)).mean(0).tolist()
    print(f"{name:17} accuracy {accuracy.mean():.1f} % ({', '.join(f'{value:.1f} %' for value in accuracy)})")
    print(f"{'':17} shares   {' '.join(f'{100 * share:.0f} %' for share in shares[name])}")
