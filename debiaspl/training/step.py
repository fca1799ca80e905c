"""One training step, and all state that it changes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from debiaspl.algorithms import Batch, Models
from debiaspl.data import UNLABELED, Drawn, Feed, ImageSet, Task, feed
from debiaspl.debias import ranks
from debiaspl.kernels import precision
from debiaspl.kernels.norm import synchronise_norms
from debiaspl.models import ALGORITHM, Average, Network, first_heads, first_weights, further_heads
from debiaspl.training.build import algorithm_of, batch_sizes, check_adopted, network_of, view_maker, with_hints
from debiaspl.training.classifier import RANDOM, SHARES, finished, first_classifier, with_learned_head
from debiaspl.training.evaluate import predict_all
from debiaspl.training.group import ALONE, Group
from debiaspl.training.monitor import Monitor, true_counts
from debiaspl.training.process import RunError
from debiaspl.training.program import Inputs, Losses, Recording, exchanged, no_sync, pieces
from debiaspl.training.recipe import Recipe
from debiaspl.training.update import Update, rate

NOTHING = Drawn(torch.empty(0, dtype=torch.int64), (), {})
"""The labeled images of a step without any."""
Begin = Callable[[Recipe, Network, Task], Mapping[str, Tensor]]
"""Makes the weights of the first classifier, by name, for a network with good features."""


class Step:
    """``step(k)`` does training step k. ``state()`` is everything that the next step depends on.

    The host passes a few numbers to a step; everything else happens on the device, with the same program every time. On
    a GPU that program is recorded once and then replayed, unless ``record`` is False.

    Each rank computes its part of the batch. All state is equal on all ranks, bit for bit, and can be loaded with any
    other number of ranks.

    A step that is not ``fresh`` gets its weights from ``load``, and reads no initial weights from files. The ranks of
    its ``group`` share work on whole sets; without a group, each rank does all of it. ``begin`` makes the first
    classifier, unless it is random. A step that is not ``monitored`` sums up nothing for a log.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        device: torch.device,
        workers: int = 0,
        record: bool = True,
        fresh: bool = True,
        group: Group = ALONE,
        begin: Begin = first_classifier,
        monitored: bool = True,
    ) -> None:
        self.recipe, self.device, self.task, self.workers = recipe, device, task.to(device), workers
        self.group, self.monitored, self.dtype = group, monitored, precision(device, recipe.precision)
        if task.has_labels and int(task.labeled.labels.min()) < 0:
            raise ValueError("a labeled image of the task has no label, expected a class number for each of them.")
        batches = batch_sizes(recipe, task, ranks.count())
        self.student = network_of(recipe, task, recipe.seed, fresh)
        self.start = first_weights(recipe.start, self.student.state_dict()) if fresh and recipe.start else {}
        self._begin_with(self.start)
        self.student.to(device)
        first = dict(begin(recipe, self.student, self.task)) if fresh and recipe.first_classifier != RANDOM else {}
        shares = first.pop(SHARES, None)
        self._begin_with(first)
        self.average = Average(self.student, recipe.average_decay, recipe.average_statistics)
        # A resumed run has the hints in its state.
        hinted = with_hints(recipe, self.task, self.student if fresh else None)
        self.algorithm = algorithm_of(recipe, hinted, self.student.num_features).to(device)
        if shares is not None:
            self.algorithm.correction.expect(shares)
        if first:
            for head in further_heads(self.algorithm):
                head.begin_with(self.student.head)
        # Not with generations: each must begin with the same heads, even after a resume when the start is gone.
        if fresh and recipe.start and self.algorithm.generations == 1:
            own = self.algorithm.state_dict()
            self.algorithm.load_state_dict(own | first_heads(recipe.start, own, self.algorithm.heads))
        if fresh:
            self.algorithm.load_pretrained()
        teacher = self.algorithm.teacher if recipe.teacher == "auto" else recipe.teacher
        labels = self.average.model if teacher == "average" else self.student
        self.models = Models(self.student, labels, self.average.model)
        together = recipe.synchronise_norm and ranks.count() > 1
        if together:
            synchronise_norms(self.student)
        self.update = Update(self.student, self.algorithm, self.average, recipe, together, self.dtype)
        self.losses = exchanged(Losses(self.models, self.algorithm))
        self._feed_labeled(self.task.labeled, batches[0])
        # Another seed than that of the labeled images, which would be shuffled alike.
        views, seed = max(sum(self.algorithm.views), 1), 2 * recipe.seed + 1
        self.unlabeled = feed(self.task.unlabeled, recipe.unlabeled_batch, views, seed, device, workers)
        self.inputs = Inputs(batches[0] // ranks.count(), batches[1] // ranks.count(), device)
        self.generator = torch.Generator(device).manual_seed(recipe.seed)
        fast = self.dtype == torch.bfloat16
        self.views = view_maker(recipe, task.unlabeled, self.dtype if fast else None)
        self.monitor = Monitor(true_counts(task.unlabeled))
        self.skipped: dict[str, str] = {}
        self.first_bad_step = torch.full((), -1, dtype=torch.int64, device=device)
        self.adopted = torch.full_like(self.task.unlabeled.labels, UNLABELED)
        self._recording = Recording(self.generator, ranks.count() > 1) if record and fast else None

    def _begin_with(self, weights: Mapping[str, Tensor]) -> None:
        """Set the initial weights, to which the student is also reset at a new generation."""
        self.start = {**self.start, **weights}
        self.student.load_state_dict(self.student.state_dict() | self.start)

    def __call__(self, number: int) -> None:
        generation, number_here, length = self._place(number)
        if generation and number_here == 0:
            self._begin_generation(generation)
        self.learning_rate = self.recipe.learning_rate * rate(number_here, length, self.recipe.arc, self.recipe.warm_up)
        labeled = NOTHING if self.labeled is None else self._drawn(self.labeled[number], self.labeled_images)
        unlabeled = self._drawn(self.unlabeled[number], self.task.unlabeled) if any(self.algorithm.views) else None
        self.inputs.set(number, number_here / length, self.learning_rate, labeled, unlabeled)
        with torch.random.fork_rng(devices=[], enabled=self.student.draws):
            if self.student.draws:  # from torch's own generator: a resumed run must draw the same numbers
                torch.manual_seed((self.recipe.seed + 1) * 2**32 + number)
            if self._recording is None:
                self._compute()
            else:
                self._recording(self._compute)

    def _place(self, number: int) -> tuple[int, int, int]:
        """The generation of a step, its number in it, and the length of that generation."""
        steps, count = self.recipe.steps, self.algorithm.generations
        generation = number * count // steps
        first, end = -(-generation * steps // count), -(-(generation + 1) * steps // count)
        return generation, number - first, end - first

    def _compute(self) -> None:
        """Everything that happens on the device: the same operations on the same tensors in every step."""
        batch, truth = self._draw()
        count, correction = self.recipe.accumulate, self.algorithm.correction
        if count > 1:
            correction.hold()
        # Convolutions must add in a fixed order, or a resumed run would end with other bits; this costs nothing.
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
            for number, (piece, known) in enumerate(pieces(batch, truth, count)):
                with no_sync(self.losses, number + 1 < count):
                    self._add_gradient(piece, known, count, add=number > 0)
            if count > 1:
                correction.release()
            self.update.step(self.inputs.rate if self.device.type == "cuda" else self.learning_rate)

    def _add_gradient(self, batch: Batch, truth: Tensor, count: int, add: bool) -> None:
        """Take the gradient of one of ``count`` pieces, and update the monitors."""
        half = self.dtype != torch.float32
        # Without a cache: a bias that was cast without gradients, for weak views, would have none afterwards.
        with torch.autocast(self.device.type, self.dtype if half else None, enabled=half, cache_enabled=False):
            losses: dict[str, Tensor] = self.losses(batch)
        total = torch.stack(list(losses.values())).sum()
        self.update.take(total if count == 1 else total / count, add)
        if self.monitored:
            self.monitor.add(losses, self.algorithm.monitors, truth, self.task.labeled.num_classes)
        bad = (self.first_bad_step < 0) & ~total.detach().isfinite()
        self.first_bad_step.copy_(torch.where(bad, self.inputs.number, self.first_bad_step))

    def _draw(self) -> tuple[Batch, Tensor]:
        """The views of this step, and, only for the monitors, the true labels of its unlabeled images."""
        known, labeled, labeled_strong = self._views("labeled", self.labeled, 1)
        source = self.unlabeled if any(self.algorithm.views) else None
        positions, weak, strong = self._views("unlabeled", source, self.algorithm.views.weak)
        nothing = torch.empty((0, *self.task.unlabeled.images.shape[1:]), device=self.device)
        batch = Batch(
            labeled=labeled[0] if labeled else nothing,
            labels=self.labeled_images.labels[known],
            weak=weak,
            strong=strong,
            positions=positions,
            progress=self.inputs.progress,
            generator=self.generator,
            labeled_strong=labeled_strong,
        )
        return batch, self.task.unlabeled.truth[positions]

    def _views(
        self, name: str, source: Feed | None, weak: int
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Positions of images, so many weak views of them and their strong views; all empty without a source."""
        positions = self.inputs.positions(name)
        if source is None:
            return positions[:0], (), ()
        pictures = self.inputs.pictures(name) if source.look_up is None else source.look_up(positions)
        weak_views = self.views.weak(pictures[:weak], self.generator)
        return positions, tuple(weak_views), tuple(self.views.strong(pictures[weak:], self.generator))

    def _begin_generation(self, generation: int) -> None:
        """Label unlabeled images with the averaged student, and reset the student."""
        model = with_learned_head(self.average.model, self.algorithm)
        probabilities = predict_all(model, self.task.unlabeled, self.group)
        # Ranks on different hardware might round differently, so all use the labels of the first.
        adopted = self.algorithm.adopt(probabilities, generation - 1)
        check_adopted(self.algorithm, adopted, len(self.task.unlabeled))
        self._adopt(ranks.of_first(adopted.to(self.device)))
        first = network_of(self.recipe, self.task, self.recipe.seed + generation, fresh=True).state_dict() | self.start
        self.update.load_exact(self.student, first)
        self.average.model.load_state_dict(first)
        self.update.restart()

    def _adopt(self, labels: Tensor) -> None:
        """Move unlabeled images to the labeled ones, with these labels; -1: not this one."""
        self.adopted = labels.to(self.device)
        chosen = (self.adopted >= 0).nonzero().flatten().cpu()
        images = self.task.labeled
        if len(chosen):
            part = self.task.unlabeled.select(chosen)
            part = replace(part, labels=self.adopted[chosen.to(self.device)], truth=part.truth)
            images = images.joined(part)
        self._feed_labeled(images, self.recipe.labeled_batch)
        if self._recording is not None:
            self._recording.forget()  # it uses the previous images

    def _feed_labeled(self, images: ImageSet, batch: int) -> None:
        self.labeled_images = images
        self.labeled: Feed | None = None
        if batch:
            views, seed = 1 + self.algorithm.labeled_strong, 2 * self.recipe.seed
            classes = images.labels if self.algorithm.balanced_labels else None
            self.labeled = feed(images, batch, views, seed, self.device, self.workers, classes)

    def _drawn(self, drawn: Drawn, images: ImageSet) -> Drawn:
        """The drawn images; unreadable files are collected by name, for the next line of the log."""
        self.skipped |= {images.ids[position]: reason for position, reason in drawn.skipped.items()}
        return drawn

    def finished(self) -> Network:
        """The averaged student, with its final classifier."""
        return finished(self.average.model, self.algorithm, self.task, self.group)

    def heads(self) -> dict[str, Tensor]:
        """What a self-supervised algorithm has trained beside the network, for runs that start from this one. Empty for
        other algorithms: they have learned from labels that those runs may not use."""
        if self.algorithm.learns_labels:
            return {}
        state = self.update.exact_state(self.algorithm)
        return {f"{ALGORITHM}{name}": value for name, value in state.items() if name.startswith(self.algorithm.heads)}

    def state(self) -> dict[str, Tensor]:
        """Everything that changes from step to step, by name; the state of the first rank is that of all."""
        self.monitor.collect()
        state = {f"student.{name}": value for name, value in self.update.exact_state(self.student).items()}
        state |= {f"average.{name}": value for name, value in self.average.model.state_dict().items()}
        state |= {f"algorithm.{name}": value for name, value in self.update.exact_state(self.algorithm).items()}
        state |= {f"momentum.{name}": value for name, value in self.update.momenta().items()}
        state |= {f"monitor.{name}": value for name, value in self.monitor.sums.items()}
        if self.algorithm.generations > 1:
            state["adopted"] = self.adopted
            state |= {f"start.{name}": value for name, value in self.start.items()}  # the file may be gone later
        return state | {"generator": self.generator.get_state()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``state()``."""
        try:
            self.update.load_exact(self.student, _under("student.", state))
            self.average.model.load_state_dict(_under("average.", state))
            self.update.load_exact(self.algorithm, _under("algorithm.", state))
            self.update.load_momenta(_under("momentum.", state))
            self.generator.set_state(state["generator"])
            if self.algorithm.generations > 1:
                self._adopt(state["adopted"])
                self.start = _under("start.", state)
        except (KeyError, RuntimeError, ValueError) as error:
            raise RunError(f"the checkpoint does not fit this recipe: {error}") from error
        self.monitor.load(_under("monitor.", state), self.device)
        if self._recording is not None:
            self._recording.forget()


def _under(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def fit(recipe: Recipe, task: Task, device: torch.device, begin: Begin = first_classifier) -> Step:
    """Train in memory, without a folder or a log. Returns the step after the last one; its ``finished()`` is the model.
    ``begin`` makes the first classifier."""
    step = Step(recipe, task, device, begin=begin, monitored=False)
    for number in range(recipe.steps):
        step(number)
    bad = int(step.first_bad_step)
    if bad >= 0:
        raise ValueError(f"the loss of step {bad} is not a finite number. Check the values of the data.")
    return step
