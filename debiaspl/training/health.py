"""Measures, without labels, whether a run learns features: on the averaged model, for a fixed sample of its images."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import ImageSet, LazyImages, loaded
from debiaspl.debias import ranks
from debiaspl.models import Network, predict_set, spread
from debiaspl.models.predict import BATCH
from debiaspl.training.errors import RunError
from debiaspl.training.group import Group
from debiaspl.training.recipe import Recipe
from debiaspl.training.step import Step
from debiaspl.training.verdict import COLLAPSED, verdict
from debiaspl.training.views import view_maker

SAMPLE = 1000
"""Number of measured images, or all if there are fewer; the same for labeled ones."""
TIMES = 20
"""Number of measurements in a run whose recipe does not set an interval."""
READ_AT_ONCE = 50
MORE_STEPS = "More steps would help."

Record = dict[str, Any]


class Health:
    """``health.look(record)``: measurements of the averaged model's features for a line of the log, and, once, a
    warning if something is wrong.

    The sample and its views are the same every time, from separate generators with the run's seed. Training is not
    affected. Files are read once. Test images are not used.
    """

    def __init__(self, step: Step, group: Group, log: Sequence[Record]) -> None:
        """``log`` contains the records of an earlier part of the run."""
        self._step, self._group = step, group
        # A single image gives no information.
        self._every = interval(step.recipe, step.algorithm.learns_labels) if len(step.task.unlabeled) > 1 else 0
        self._history = measured_lines(log)
        self._sample: Sample | None = None

    def due(self, number: int) -> bool:
        """Whether to measure after so many steps: before the first one, at each interval and after the last one."""
        return self._every > 0 and (number % self._every == 0 or number == self._step.recipe.steps)

    def look(self, record: Record) -> Record:
        """``health``, and ``warning`` or ``note`` if there is something new. The first rank measures, which takes
        milliseconds. All ranks must call this."""
        found: dict[str, Any] = {}
        if self._group.first:
            found["health"] = self._measured()
            self._history.append({**record, **found})
            found |= self._news()
            self._history[-1] |= found
        self._group.largest(0)  # first between the hosts: on a GPU a rank that hangs would not be noticed
        return found

    def _news(self) -> Record:
        task, algorithm = self._step.task, self._step.algorithm
        classes = task.labeled.num_classes if algorithm.learns_labels else 0
        found = verdict(self._history, self._step.recipe.steps, min(len(task.labeled), SAMPLE), classes)
        said = {record[kind]["kind"] for record in self._history for kind in ("warning", "note") if kind in record}
        if found is None or found.kind in said or (said and found.kind != COLLAPSED):
            return {}
        todo = algorithm.advice if found.is_warning else MORE_STEPS
        return {"warning" if found.is_warning else "note": {"kind": found.kind, "fact": found.fact, "todo": todo}}

    def _measured(self) -> dict[str, float | None]:
        # Nothing here may depend on the number of ranks.
        with ranks.alone(), torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
            if self._sample is None:
                self._sample = Sample(self._step)
            return self._sample.measured(self._step.average.model)


def interval(recipe: Recipe, learns_labels: bool) -> int:
    """Steps between two measurements; 0: none."""
    if recipe.health_every:
        return max(recipe.health_every, 0)
    return 0 if learns_labels else -(-recipe.steps // TIMES)


class Sample:
    """Images in memory, and their measurements."""

    def __init__(self, step: Step) -> None:
        seed, task = step.recipe.seed, step.task
        unlabeled = _drawn(task.unlabeled, seed)
        self._seed, self._device = seed, step.device
        self._views = view_maker(step.recipe, task.unlabeled, None)
        self._plain = _in_memory(unlabeled)
        self._labeled = _in_memory(_drawn(task.labeled, seed)) if task.has_labels else None
        self._crops = _crops(unlabeled, self._plain, seed)

    @torch.no_grad()
    def measured(self, model: Network) -> dict[str, float | None]:
        features = self._finite(_features(model, self._plain))
        first, second = self._viewed(model)
        return {
            "rank": spread.effective_rank(features),
            "spread": spread.spread(features),
            "alignment": spread.alignment(first, second),
            "overlap": spread.overlap(first, second),
            "uniformity": spread.uniformity(features),
            "neighbours": self._neighbours(model),
        }

    def _neighbours(self, model: Network) -> float | None:
        """Share of the labeled images whose nearest other one is of the same class."""
        if self._labeled is None:
            return None
        known = self._finite(_features(model, self._labeled))
        return spread.nearest_neighbour_accuracy(known, self._labeled.labels)

    def _viewed(self, model: Network) -> tuple[Tensor, Tensor]:
        """Features of two strong views of each image."""
        generator = torch.Generator(self._device).manual_seed(self._seed)
        found: tuple[list[Tensor], list[Tensor]] = ([], [])
        for pictures in zip(*(torch.split(crop, BATCH) for crop in self._crops), strict=True):
            views = self._views.strong([one.to(self._device) for one in pictures], generator)
            for view, features in zip(views, found, strict=True):
                features.append(model.embed(view))
        first, second = (self._finite(torch.cat(features)) for features in found)
        return first, second

    def _finite(self, features: Tensor) -> Tensor:
        if not bool(features.isfinite().all()):
            raise RunError(
                "the averaged model returns features that are not finite numbers, so the run has stopped. Try a "
                "smaller learning_rate first, in a new run."
            )
        return features


def _drawn(images: ImageSet, seed: int) -> ImageSet:
    generator = torch.Generator().manual_seed(seed)
    return images.select(torch.randperm(len(images), generator=generator)[:SAMPLE].sort().values)


def _in_memory(images: ImageSet) -> ImageSet:
    """The images without unreadable files, which the log names when they occur in training."""
    stored = loaded(images)[0]
    if isinstance(stored.images, Tensor):
        return stored
    return replace(stored, images=stored.images[torch.arange(len(stored))])  # a packed set, from disk


def _crops(images: ImageSet, plain: ImageSet, seed: int) -> Sequence[Tensor]:
    """Inputs of the strong views, (N, C, H, W) for each of the two: the image or, if training crops images while
    reading, a random crop, which is drawn once."""
    stored = images.images
    if not isinstance(stored, LazyImages):
        assert isinstance(plain.images, Tensor)
        return plain.images, plain.images
    parts = torch.split(torch.arange(len(images)), READ_AT_ONCE)
    with ThreadPoolExecutor(thread_name_prefix="decode") as pool:
        made = list(pool.map(lambda part: stored.load(part, 2, seed + int(part[0])).pictures, parts))
    return list(torch.cat(made, dim=1))


def _features(model: Network, images: ImageSet) -> Tensor:
    return torch.cat([seen.features for seen in predict_set(model, images, BATCH)])


def measured_lines(log: Sequence[Record]) -> list[Record]:
    """Lines of the log with a measurement."""
    return [record for record in log if "health" in record]


def health_results(log: Sequence[Record]) -> Record:
    """Entries of results.json: the first and the last measurement, and all warnings and notes."""
    lines = measured_lines(log)
    if not lines:
        return {}
    found: Record = {"health": {"first": _with_step(lines[0]), "last": _with_step(lines[-1])}}
    for kind in ("warning", "note"):
        said = [{"step": line["step"], **line[kind]} for line in lines if kind in line]
        found |= {f"{kind}s": said} if said else {}
    return found


def _with_step(line: Record) -> Record:
    return {"step": line["step"], **line["health"]}
