"""A tiny Qwen3-VL, as a checkpoint of Hugging Face's, and a batch with images for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulate import models

IMAGE, START, END, VOCABULARY = 120, 121, 122, 128
PATCH, TEMPORAL, MERGE = 4, 2, 2


def configuration() -> Any:
    """Three layers of text, three of vision, deep-stack from two of these."""
    from transformers import Qwen3VLConfig

    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 128,  # what the bridge's provider has, whatever is said here
        "max_position_embeddings": 256,
        "rope_theta": 5000000.0,
        "rope_scaling": {
            "rope_type": "default",
            "mrope_section": [24, 20, 20],
            "mrope_interleaved": True,
        },
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    vision = {
        "depth": 3,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "in_channels": 3,
        "patch_size": PATCH,
        "temporal_patch_size": TEMPORAL,
        "spatial_merge_size": MERGE,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
    }
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=IMAGE,
        video_token_id=IMAGE + 3,
        vision_start_token_id=START,
        vision_end_token_id=END,
        tie_word_embeddings=False,
        architectures=["Qwen3VLForConditionalGeneration"],
    )


def checkpoint(folder: Path) -> Any:
    """Hugging Face's model with random weights, on the CPU, saved to a folder; gives the model."""
    import torch
    from transformers import Qwen3VLForConditionalGeneration

    torch.manual_seed(11)
    model = Qwen3VLForConditionalGeneration(configuration()).float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 and "norm" in name and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)  # not all ones: a norm that is left out shows
            else:
                parameter.normal_(0, 0.1)
    model.save_pretrained(folder)
    return model


def samples() -> list[dict[str, Any]]:
    """Prompts with no, two and one image, and answers: tokens, images, what the loss counts."""
    import torch

    random = torch.Generator().manual_seed(5)
    made = []
    shapes: tuple[tuple[list[list[int]], int, int], ...] = (
        ([], 5, 4),
        ([[1, 4, 4], [1, 2, 6]], 3, 6),
        ([[1, 6, 4]], 4, 3),
    )
    for grids, before, answer in shapes:
        parts = [torch.randint(3, IMAGE, (before,), generator=random)]
        for rows in grids:
            image = torch.full((torch.tensor(rows).prod().item() // MERGE**2,), IMAGE)
            parts += [torch.tensor([START]), image, torch.tensor([END])]
        tokens = torch.cat([*parts, torch.randint(3, IMAGE, (answer,), generator=random)])
        patches = sum(frames * rows * columns for frames, rows, columns in grids)
        pixels = torch.randn(patches, 3 * TEMPORAL * PATCH * PATCH, generator=random)
        seen = {"pixel_values": pixels, "image_grid_thw": torch.tensor(grids)} if grids else {}
        made.append({"tokens": tokens, "response_length": answer, "multimodal": seen})
    return made


def reference(model: Any, sample: dict[str, Any]) -> Any:
    """Hugging Face's log probabilities of a sample's answer, on the CPU, with a graph."""
    import torch

    tokens = sample["tokens"].unsqueeze(0)
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), **sample["multimodal"]}
    given |= models.kinds(model, tokens == IMAGE)
    logits = model(**given).logits[0]
    wanted = sample["response_length"]
    scores = torch.log_softmax(logits.float()[-wanted - 1 : -1], -1)
    return scores.gather(1, sample["tokens"][-wanted:].unsqueeze(1)).squeeze(1)
