"""What both of OpenNMT-py's workers need: its own options, vocabularies and model."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pyonmttok
from onmt.constants import DefaultTokens
from onmt.model_builder import build_model
from onmt.models import NMTModel
from onmt.opts import train_opts
from onmt.utils.parse import ArgumentParser

PAD, BOS, EOS = 1, 2, 3  # `<unk>` is 0


def options(sizes: dict[str, Any]) -> Namespace:
    """Those of `onmt_train` for the model of the measurement; everything else as released."""
    parser = ArgumentParser()
    train_opts(parser)
    flags = "-data {} -src_vocab none -encoder_type rnn -decoder_type rnn -rnn_type LSTM -input_feed 1"
    flags += " -global_attention general -dropout 0 -optim sgd -learning_rate 0.1 -max_grad_norm 5 -batch_type sents"
    flags += f" -layers {sizes['layers']} -hidden_size {sizes['hidden']} -word_vec_size {sizes['hidden']}"
    flags += f" -batch_size {sizes['batch']}" + " -world_size 1 -gpu_ranks 0" * (sizes["device"] == "cuda")
    opt = parser.parse_args(flags.split())
    ArgumentParser.update_model_opts(opt)
    ArgumentParser.validate_model_opts(opt)
    opt.data = {}  # no files: the worker makes its batches
    return opt


def vocabularies(size: int) -> dict[str, Any]:
    """Of both sides, the specials counted."""
    specials = [DefaultTokens.UNK, DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS]
    words = [f"w{i}" for i in range(size - len(specials))]
    side = pyonmttok.build_vocab_from_tokens(words, special_tokens=specials)
    side.default_id = 0
    return {"src": side, "tgt": side, "data_task": "seq2seq", "decoder_start_token": DefaultTokens.BOS}


def build(sizes: dict[str, Any]) -> tuple[Namespace, dict[str, Any], NMTModel]:
    """Options, vocabularies and the model."""
    opt, vocabs = options(sizes), vocabularies(sizes["vocabulary"])
    return opt, vocabs, build_model(opt, opt, vocabs, None, gpu(sizes))


def gpu(sizes: dict[str, Any]) -> int:
    """Its number for the device."""
    return 0 if sizes["device"] == "cuda" else -1
