"""docs/corrections.md says which correction for which images: the numbers there, computed from results/."""

import json
from pathlib import Path
from statistics import mean

from debiaspl.report.intervals import mean_interval

ROOT = Path(__file__).parents[2]
WORDS = " ".join((ROOT / "docs" / "corrections.md").read_text().split())


def gains(ours: str, plain: str) -> list[float]:
    """In points, of each fold that both have."""
    both = [
        {fold.get("fold", place): 100 * fold["accuracy"] for place, fold in enumerate(json.loads(text)["folds"])}
        for text in ((ROOT / "results" / f"{name}.json").read_text() for name in (ours, plain))
    ]
    return [both[0][fold] - both[1][fold] for fold in both[0] if fold in both[1]]


def test_few_labels():
    pairs = [
        gains(f"{name}{ending}", f"{name}-fixmatch{ending}")
        for name, ending in (
            ("gain/cifar10-40/cifar10-40-minutes", ""),
            ("start/cifar10-40/cifar10-40-start", ""),
            ("start/cifar10-40/cifar10-40-start", "-earlier"),
        )
    ]
    assert "better than FixMatch in all nine pairs of runs" in WORDS
    found = [gain for one in pairs for gain in one]
    assert len(found) == 9
    assert min(found) > 0
    assert "with a start the gain is not significant" in WORDS
    assert all(mean_interval(one)[0] < 0 for one in pairs[1:])


def test_a_shared_long_tail():
    name = "start/cifar10-lt100-10pct/cifar10-lt100-10pct-start"
    found = [mean(gains(f"{name}{ending}", f"{name}-fixmatch")) for ending in ("", "-margins", "-fixmatch-adjusted")]
    assert [round(value) for value in found] == [9, 12, 12]
    assert "`debiaser` alone gains 9 points on three folds, its margins with `alignment`" in WORDS
    assert "`alignment+logit-adjustment`, 12 (" in WORDS


def test_long_tailed_labels_and_balanced_images():
    name = "gain/cifar10-lt200-10pct-balanced/cifar10-lt200-10pct-balanced-minutes"
    variants = [path for path in (ROOT / "results").glob(f"{name}*.json") if "-fixmatch" not in path.stem]
    names = [path.relative_to(ROOT / "results").with_suffix("").as_posix() for path in variants]
    found = [gains(one, f"{name}-fixmatch") for one in names]
    assert {round(mean(one)) for one in found} == {15, 17}
    assert all(mean_interval(one)[0] < 0 for one in found)
    assert "gained 15 to 17 points on three folds; the interval contains 0" in WORDS


def test_a_long_tail_in_the_opposite_direction():
    name = "long-tail/cifar10-lt-500-4000-g100-reversed-start"
    (debiaser,), (simpro,) = (gains(f"{name}{ending}", f"{name}-fixmatch") for ending in ("", "-simpro"))
    assert (round(debiaser), round(simpro)) == (-3, 2)
    assert "`debiaser` is 3 points below FixMatch, and `simpro` 2 above it" in WORDS
