"""Writes a trained model with its tokenizer as a GGUF file that llama.cpp loads."""

import json

import gguf
from tokenizers import Tokenizer

from model import Params, Shape

NAME = "torchserve-ts tiny llama"
DESCRIPTION = "A small Llama trained from nothing on the King James Bible (public domain). Continues text; no chat."
TYPES = {
    "F32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "F16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "Q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}


def add_architecture(writer: gguf.GGUFWriter, shape: Shape, file_type: gguf.LlamaFileType) -> None:
    writer.add_type("model")
    writer.add_name(NAME)
    writer.add_description(DESCRIPTION)
    writer.add_file_type(file_type)
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.embedding_length)
    writer.add_block_count(shape.block_count)
    writer.add_feed_forward_length(shape.feed_forward_length)
    writer.add_head_count(shape.head_count)
    writer.add_head_count_kv(shape.head_count)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(shape.rope_freq_base)
    writer.add_vocab_size(shape.vocab_size)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    """A byte-level BPE is GPT-2's kind; its tokens and merges are taken over as they are."""
    described = json.loads(tokenizer.to_str())
    control = {token["content"] for token in described["added_tokens"]}
    tokens = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in described["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if t in control else gguf.TokenType.NORMAL for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokenizer.token_to_id("<s>"))
    writer.add_eos_token_id(tokenizer.token_to_id("</s>"))
    writer.add_add_bos_token(False)


def write_gguf(path: str, params: Params, shape: Shape, tokenizer: Tokenizer, kind: str) -> None:
    """`kind` is the type of the matrices, a key of TYPES; the norms always stay F32."""
    matrix_type, file_type = TYPES[kind]
    writer = gguf.GGUFWriter(path, "llama")
    add_architecture(writer, shape, file_type)
    add_tokenizer(writer, tokenizer)
    for name, value in params.items():
        weights = value.detach().numpy()
        kept = gguf.GGMLQuantizationType.F32 if weights.ndim == 1 else matrix_type
        writer.add_tensor(name, gguf.quants.quantize(weights, kept), raw_dtype=kept)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
