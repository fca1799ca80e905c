"""CoOp: prompts are what the model makes of them, and learning its words fits the labels."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.data import DataError
from debiaspl.encoders.coop import Prompts, epochs_for, learned_text, rate_of
from debiaspl.encoders.text import TextSide
from tests.zeroshot.models import save_model

pytest.importorskip("transformers")
CLASSES = ("red_flower", "china temple", "picture")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return str(save_model(tmp_path_factory.mktemp("coop") / "clip", "clip"))


def test_with_the_vectors_of_words_a_prompt_is_the_text_of_these_words(clip):
    side = TextSide(clip)
    prompts = Prompts(side, CLASSES)
    assert prompts.vectors == 12 - 5  # all that is left of 12 places by a start, two words, a full stop and an end
    words = ["a", "photo", "of", "the", "a", "photo", "of"]
    tokens = side.tokens([" ".join(words)])["input_ids"][0, 1:-1]
    with torch.no_grad():
        vectors = side.model.text_model.embeddings.token_embedding(tokens)
        found = prompts(vectors)
        expected = side.features(side.tokens([f"{' '.join(words)} {name.replace('_', ' ')}." for name in CLASSES]))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    with torch.no_grad():  # the model is as it was
        assert not torch.equal(side.features(prompts.tokens), expected)


def test_learned_words_fit_the_labels_and_nothing_else_moves(clip):
    generator = torch.Generator().manual_seed(0)
    centres, labels = torch.randn(3, 8, generator=generator), torch.arange(48) % 3
    features = 3 * centres[labels] + torch.randn(48, 8, generator=generator)
    drawn = torch.get_rng_state()
    first, last, again = (learned_text(clip, CLASSES, features, labels, epochs=count) for count in (1, 100, 100))
    assert torch.equal(torch.get_rng_state(), drawn)
    assert torch.equal(last.directions, again.directions)
    torch.testing.assert_close(last.directions.norm(dim=-1), torch.ones(3))
    assert not last.directions.requires_grad
    losses = [
        F.cross_entropy(one.scale * F.normalize(features, dim=-1) @ one.directions.T, labels) for one in (first, last)
    ]
    assert losses[1] < losses[0] - 0.1


def test_the_schedule_is_the_published_one_and_names_must_leave_room(clip, tmp_path):
    assert [epochs_for(shots) for shots in (1, 2, 4, 8, 16)] == [50, 100, 100, 200, 200]
    rates = [rate_of(epoch, 50) for epoch in range(50)]
    assert rates[0] == 1e-5
    assert rates[25] == pytest.approx(0.001)
    assert rates[1:] == sorted(rates[1:], reverse=True)
    with pytest.raises(ValueError, match="siglip"):
        learned_text(str(save_model(tmp_path / "siglip", "siglip")), CLASSES, torch.ones(2, 8), torch.arange(2))
    with pytest.raises(DataError, match="class name"):
        Prompts(TextSide(clip), ["a " * 20])
