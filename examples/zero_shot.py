"""Zero-shot labels from arrays, without any label
=================================================

``ZeroShot`` needs what a CLIP gives: a feature vector for every image, and one for every class name. Here both are made
up, so that the right answer is known: 4,000 images of eight classes, and texts of which two are too close to all
images, so that their classes are predicted too often. Prints the accuracy and the shares of the classes of the plain
zero-shot predictions, of the debiased ones, and of a linear classifier trained with DebiasPL. Takes about 4 seconds on
one core.
"""

import numpy as np

from debiaspl import ZeroShot

CLASSES = ["airplane", "bird", "cat", "deer", "dog", "frog", "ship", "truck"]

# Image features: a direction that all of them share, one for each class, and noise.
random = np.random.default_rng(0)
shared, own = random.normal(size=64), random.normal(size=(8, 64))
truth = random.integers(8, size=4000)
image_features = shared + own[truth] + 1.5 * random.normal(size=(4000, 64))

# Text features: near their class, but not exactly; "bird" and "dog" also have some of what all images share.
text_features = own + 1.2 * random.normal(size=(8, 64))
text_features[[1, 4]] += 0.6 * shared

model = ZeroShot(text_features, CLASSES, temperature=0.05, confidence=0.8).fit(image_features)

answers = {
    "zero-shot": model.classes_[model.zero_shot_.argmax(-1)],
    "debiased": model.classes_[model.debiased_.argmax(-1)],
    "trained": model.transduction_,
}
print(f"{'':18}" + "".join(f"{name:>11}" for name in answers))
accuracy = [(predicted == model.classes_[truth]).mean() for predicted in answers.values()]
print(f"{'accuracy':18}" + "".join(f"{100 * value:>9.1f} %" for value in accuracy))
for name in CLASSES:
    shares = [(predicted == name).mean() for predicted in answers.values()]
    print(f"{f'share of {name}':18}" + "".join(f"{100 * share:>9.1f} %" for share in shares))

new = shared + own[6] + 1.5 * random.normal(size=(1, 64))
print(f"a new image of a ship: {model.predict(new)[0]}")
