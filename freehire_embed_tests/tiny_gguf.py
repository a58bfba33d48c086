"""A model for llama.cpp, made here: a BERT of two layers with weights by chance. Its vectors mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 64
CONTEXT = 512
_LAYERS = 2
_INNER = 128
_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_model(path: Path) -> None:
    """Needs the package `gguf`."""
    import gguf

    letters = [chr(code) for code in range(33, 127)]
    tokens = [*_SPECIALS, *(f"\u2581{letter}" for letter in letters), *letters]
    out = gguf.GGUFWriter(str(path), "bert")
    out.add_name("tiny")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(_INNER)
    out.add_block_count(_LAYERS)
    out.add_head_count(4)
    out.add_layer_norm_eps(1e-12)
    out.add_causal_attention(False)
    out.add_pooling_type(gguf.PoolingType.MEAN)
    out.add_tokenizer_model("bert")
    out.add_token_list(tokens)
    out.add_token_types([3] * len(_SPECIALS) + [1] * (len(tokens) - len(_SPECIALS)))
    out.add_token_type_count(2)
    out.add_pad_token_id(0)
    out.add_unk_token_id(1)
    out.add_bos_token_id(2)
    out.add_eos_token_id(3)
    out.add_sep_token_id(3)
    out.add_mask_token_id(4)
    chance = np.random.default_rng(1)

    def matrix(name: str, *shape: int) -> None:
        out.add_tensor(name, chance.normal(scale=0.3, size=shape).astype(np.float32))

    def norm(name: str) -> None:
        out.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
        matrix(f"{name}.bias", WIDTH)

    matrix("token_embd.weight", len(tokens), WIDTH)
    matrix("position_embd.weight", CONTEXT, WIDTH)
    matrix("token_types.weight", 2, WIDTH)
    norm("token_embd_norm")
    for layer in range(_LAYERS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{part}.weight", WIDTH, WIDTH)
            matrix(f"blk.{layer}.{part}.bias", WIDTH)
        norm(f"blk.{layer}.attn_output_norm")
        matrix(f"blk.{layer}.ffn_up.weight", _INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_up.bias", _INNER)
        matrix(f"blk.{layer}.ffn_down.weight", WIDTH, _INNER)
        matrix(f"blk.{layer}.ffn_down.bias", WIDTH)
        norm(f"blk.{layer}.layer_output_norm")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
