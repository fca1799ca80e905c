"""Train on arrays of your own
=============================

``train(recipe, out, data=(images, labels))`` takes images and class numbers as NumPy arrays or tensors; -1 means no
label. Here they are 1,200 digits of which 40 have a label; 597 others are kept apart. The run is a folder, and
``load_model`` gives its model back. Prints how many labels were learned from, the accuracy on the digits kept apart,
and a few predictions. Takes about 6 seconds on one core.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from debiaspl import load_model, recipe, train

# uint8 images of shape (N, H, W), (N, H, W, C) or (N, C, H, W); floats from 0 to 1 are taken too.
digits = load_digits()
images = (digits.images * 255 / 16).astype(np.uint8)
known, apart = slice(0, 1200), slice(1200, None)

# Four labels a class; every other image has -1.
labels = np.full(1200, -1)
for number in range(10):
    four = np.flatnonzero(digits.target[known] == number)[:4]
    labels[four] = number

# A recipe has every setting: network, algorithm, correction, views, schedule. Change some of them.
settings = recipe("digits-10").changed(steps=200, threshold=0.8, seed=0)

with tempfile.TemporaryDirectory() as folder:
    run = Path(folder) / "run"
    results = train(settings, run, data=(images[known], labels))
    model = load_model(run)

predicted = np.array(model.predict(images[apart]))
truth = digits.target[apart].astype(str)
probabilities = model.probabilities(images[apart][:5])

print(f"{sum(results['labels'])} labels and {results['unlabeled']:,} images without a label")
print(f"accuracy on {len(truth)} other images: {100 * (predicted == truth).mean():.1f} %")
print("predicted:", *predicted[:5], " truth:", *truth[:5])
print("probability of that class:", *(f"{value:.2f}" for value in probabilities.max(1).values.tolist()))
