"""Classifiers of normalised features against their papers."""

import pytest
import torch

from debiaspl import load_model
from debiaspl.debias import CausalNorm, PosthocLogitAdjustment
from debiaspl.debias.heads import NormalisedHead
from debiaspl.models.network import HEADS, make_head
from debiaspl.training import train
from tests.reference import corrections
from tests.training.tiny import EAGER, changed, check_resume

SHAPES = {"cosine": (1, 30.0, 0.0), "causal": (2, 16.0, 1 / 32)}


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_the_effect_without_the_mean_are_the_papers(name, alpha):
    torch.manual_seed(0)
    heads, scale, slack = SHAPES[name]
    head, features = make_head(name, 6, 4), torch.randn(20, 6).relu() + 0.1
    mean = torch.zeros(6)
    for _ in range(3):
        head.train()(features)
        mean = 0.9 * mean + 0.1 * features.mean(0)
    final = CausalNorm(alpha).classifier(head.eval(), features.mean(0))
    assert float(head.alpha) == 0
    torch.testing.assert_close(head.mean, mean)
    for row, logits in zip(features.tolist(), final(features).tolist(), strict=True):
        for weight, logit in zip(head.weight.tolist(), logits, strict=True):
            expected = corrections.multi_head(weight, row, mean.tolist(), heads, scale, slack, alpha)
            assert logit == pytest.approx(expected, rel=1e-4, abs=1e-4)
    torch.testing.assert_close(head.each(features).mean(0), head(features))


def test_a_bias_set_after_training_counts_and_no_other_does():
    head, features = make_head("cosine", 6, 4), torch.randn(5, 6)
    final = PosthocLogitAdjustment((8, 4, 2, 1)).classifier(head, torch.zeros(6))
    torch.testing.assert_close(final(features) - head(features), (final.bias - head.bias).expand(5, 4))
    head.bias.data.zero_()
    (gradient,) = torch.autograd.grad(head(features).sum(), head.bias, materialize_grads=True, allow_unused=True)
    assert not gradient.any()


@pytest.mark.parametrize(
    ("head", "correction"), [("cosine", "ldam-drw"), ("causal", "causal-norm"), ("causal", "debiaser+causal-norm")]
)
def test_a_run_resumes_and_its_model_is_loaded_with_its_head(tmp_path, head, correction):
    recipe = changed(EAGER, f"head={head}", f"correction={correction}", "labeled_batch=8")
    check_resume(recipe, tmp_path, 6)
    loaded = load_model(tmp_path / "run").network.head
    assert isinstance(loaded, NormalisedHead)
    assert loaded.mean.any()
    assert float(loaded.alpha) == (1 if "causal" in correction else 0)


@pytest.mark.parametrize("setting", ["algorithm=abc", "algorithm=moco"])
def test_a_linear_classifier_does_not_replace_a_normalised_one(tmp_path, setting):
    recipe = changed(EAGER, setting, "correction=none", "head=cosine")
    with pytest.raises(ValueError, match="head=linear"):
        train(recipe, tmp_path / "run")


def test_wrong_heads_are_refused_and_right_ones_exported_for_any_batch():
    with pytest.raises(ValueError, match="head is"):
        make_head("round", 6, 4)
    with pytest.raises(ValueError, match="there are 7 features for 2 heads"):
        make_head("causal", 7, 4)
    assert set(HEADS) == {"linear", *SHAPES, "hidden"}
    head = make_head("causal", 6, 4).eval()
    batch = {0: torch.export.Dim("batch")}
    exported = torch.export.export(head, (torch.randn(3, 6),), dynamic_shapes=(batch,)).module()
    rows = torch.randn(5, 6)
    torch.testing.assert_close(exported(rows), head(rows))
