"""A small Qwen3-VL with random weights, as a folder that every component reads; samples for it."""

from __future__ import annotations

import base64
import dataclasses
import inspect
import io
from pathlib import Path
from typing import Any

VOCABULARY = 128
ANSWERS = 64  # words from here on have one
IMAGE, VIDEO, START, END = 124, 125, 126, 127  # tokens
MARKS = {
    IMAGE: "<|image_pad|>",
    VIDEO: "<|video_pad|>",
    START: "<|vision_start|>",
    END: "<|vision_end|>",
}
# Patches of two images: frames, rows, columns; four of them are a token. None is as large as the
# table of positions, 6 x 6, so that these are interpolated down, up and between.
GRIDS = [[1, 4, 8], [1, 10, 2]]
PATCH = 3 * 2 * 4 * 4  # values of a patch: colours, frames, rows, columns


def qwen3_vl(folder: Path, *, seed: int = 0) -> Path:
    """Two text layers, two vision layers with heads of 72 as in the 8B, one deep-stack; bf16."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    sections = {"rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": VOCABULARY,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 128,
            "max_position_embeddings": 512,
            "rope_theta": 5000000.0,
            "rope_scaling": sections,
            "tie_word_embeddings": False,
            "dtype": "bfloat16",
        },
        vision_config={
            "depth": 2,
            "hidden_size": 144,
            "num_heads": 2,
            "intermediate_size": 96,
            "patch_size": 4,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": 64,
            "num_position_embeddings": 36,
            "deepstack_visual_indexes": [0],
        },
        image_token_id=IMAGE,
        video_token_id=VIDEO,
        vision_start_token_id=START,
        vision_end_token_id=END,
        tie_word_embeddings=False,
    )
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config)
    with torch.no_grad():  # so large that a fault shows: with the usual 0.02 all tokens are alike
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=parameter[0].numel() ** -0.5)
        model.model.visual.pos_embed.weight.normal_()
    model.bfloat16().save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder


def _tokenizer() -> Any:
    """A word per token, and Qwen's names of those that are about images.

    What was encoded is decoded to the same text but for spaces between words: a server does so, and
    looks for images in it. Each word from ANSWERS on has an answer in it, 0 or 1.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import Qwen2TokenizerFast

    named = {f"w{i}": i for i in range(ANSWERS)}
    named |= {f"w{i}\\boxed{{{i % 2}}}": i for i in range(ANSWERS, IMAGE)}
    named |= {name: at for at, name in MARKS.items()}
    words = Tokenizer(models.WordLevel(named, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.decoder = decoders.Replace(Regex("^w"), " w")
    made = Qwen2TokenizerFast(
        tokenizer_object=words, unk_token="w0", eos_token="w1", pad_token="w1"
    )
    made.add_special_tokens({"additional_special_tokens": list(MARKS.values())})
    return made


# Messages as Qwen3-VL's template writes them, without the names of roles.
TEMPLATE = """\
{%- for message in messages -%}
{%- if message.content is string -%}{{ message.content }}{%- else -%}
{%- for part in message.content -%}
{%- if part.type == "text" -%}{{ part.text }}
{%- else -%}{{ " <|vision_start|><|image_pad|><|vision_end|> " }}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endfor -%}"""


def launchable(folder: Path) -> None:
    """The Qwen3-VL in `folder/model`, with the processor that servers and trainers read beside it,
    and `folder/train.parquet`: problems with an image each.
    """
    import pyarrow
    import pyarrow.parquet
    from PIL import Image
    from safetensors.torch import load_file, save_file
    from transformers import Qwen2VLImageProcessorFast, Qwen3VLProcessor, Qwen3VLVideoProcessor

    model = qwen3_vl(folder / "model")
    weights = load_file(model / "model.safetensors")
    weights["lm_head.weight"][IMAGE:] = 0  # a response never has an image of its own
    save_file(weights, model / "model.safetensors", {"format": "pt"})
    sizes = {"patch_size": 4, "temporal_patch_size": 2, "merge_size": 2}
    sizes["size"] = {"shortest_edge": 64, "longest_edge": 1024}  # pixels
    Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessorFast(**sizes),
        tokenizer=_tokenizer(),
        video_processor=Qwen3VLVideoProcessor(**sizes),
        chat_template=TEMPLATE,
    ).save_pretrained(model)
    rows = []
    for number, (_, high, wide) in enumerate(GRIDS * 2):
        image = io.BytesIO()
        Image.effect_noise((4 * wide, 4 * high), 90).convert("RGB").save(image, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}"
        problem = f"<image>w{number + 2} w7"
        rows.append({"problem": problem, "answer": str(number % 2), "images": [url]})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "train.parquet")


@dataclasses.dataclass(frozen=True)
class Sample:
    """A prompt and a response to it; `pixels` are (patches, PATCH), where there are images."""

    prompt: list[int]
    response: list[int]
    pixels: Any = None  # of all images, whose grids are GRIDS

    @property
    def tokens(self) -> list[int]:
        """Prompt and response."""
        return self.prompt + self.response


def samples() -> list[Sample]:
    """Two with two images, then two without: two prompts, two responses each.

    In this order: slime leaves out all images of a rollout whose first sample has none.
    """
    import torch

    random = torch.Generator(device="cpu").manual_seed(1)
    patches = [frames * rows * columns for frames, rows, columns in GRIDS]
    pixels = torch.randn(sum(patches), PATCH, generator=random, device="cpu")
    one, other = ([START, *[IMAGE] * (each // 4), END] for each in patches)
    seen = [3, *one, 5, *other, 7]
    return [
        Sample(seen, [11, 13, 17, 19, 23], pixels),
        Sample(seen, [29, 31, 37], pixels),
        Sample([2, 4, 6, 8], [41, 43, 47, 53]),
        Sample([2, 4, 6, 8], [59, 61]),
    ]


def images(sample: Sample) -> list[tuple[int, int]]:
    """The first and the last token of each image."""
    marks = [at for at, token in enumerate(sample.prompt) if token in (START, END)]
    return [(start + 1, end - 1) for start, end in zip(marks[::2], marks[1::2], strict=True)]


def kinds(model: Any, image_tokens: Any) -> dict[str, Any]:
    """What transformers 5 asks for beside images: which tokens stand for one."""
    if "mm_token_type_ids" not in inspect.signature(model.forward).parameters:
        return {}
    return {"mm_token_type_ids": image_tokens.int()}


def qwen3(folder: Path, *, seed: int = 0) -> Path:
    """Qwen3 without the rest: two layers; bf16."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        rope_theta=1000000.0,
        tie_word_embeddings=False,
        dtype="bfloat16",
    )
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=parameter[0].numel() ** -0.5)
    model.bfloat16().save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder
