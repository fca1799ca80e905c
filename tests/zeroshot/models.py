"""A tiny CLIP and a tiny SigLIP with random weights, saved as real model folders."""

import json
from pathlib import Path

import torch

WORDS = ["a", "photo", "of", "the", "china", "flower", "temple", "picture", ".", "red"]
SIZE, LENGTH = 16, 12


def save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<unk>", "<start>", "<end>", *WORDS]
    made = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", words.index("<start>")), ("<end>", words.index("<end>"))]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<start>",
        eos_token="<end>",
        model_max_length=LENGTH,
    ).save_pretrained(folder)


def save_model(folder: Path, kind: str, mean: float = 0.4, std: float = 0.3) -> Path:
    from transformers import CLIPConfig, CLIPModel, SiglipConfig, SiglipModel

    sides = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {**sides, "vocab_size": 4 + len(WORDS), "max_position_embeddings": LENGTH, "pad_token_id": 0}
    text |= {"bos_token_id": 2, "eos_token_id": 3}
    vision = {**sides, "image_size": SIZE, "patch_size": 8}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "clip":
            model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))
        else:
            model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision))
        for parameter in model.parameters():  # its own first weights are so small that all texts look alike
            if parameter.ndim > 1:
                parameter.data = torch.randn_like(parameter) * 0.4
    model.logit_scale.data.fill_(3.0)  # cosines of 0.1 become probabilities that differ
    model.save_pretrained(folder)
    save_tokenizer(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_mean": [mean] * 3, "image_std": [std] * 3}))
    return folder
