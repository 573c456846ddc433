"""The encoder classifier and the encoder-decoder of model/model.h, built from PyTorch's own layers.

Token and learned position embeddings, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, norms
before or after each branch, ReLU or GELU (tanh form), padding masks; a linear classifier on the
first token, or a head tied to the decoder's token embedding or not.
Needs PyTorch 1.13 (Debian's python3-torch).
"""

import torch
from torch import nn
from torch.nn import functional as F


def gelu(x):
    return F.gelu(x, approximate="tanh")


def layer(kind, width, heads, mlp_width, dropout, activation, pre_norm):
    return kind(width, heads, mlp_width, dropout, activation=F.relu if activation == "relu" else gelu,
                batch_first=True, norm_first=pre_norm)


def padding_mask(lengths, context):
    """True where a token is padding."""
    return torch.arange(context)[None, :] >= lengths[:, None]


class Stack(nn.Module):
    """Embeddings and layers; `kind` is one of PyTorch's two layers."""

    def __init__(self, kind, layers, width, heads, mlp_width, context, symbols, dropout, activation,
                 pre_norm):
        super().__init__()
        self.dropout = dropout
        self.wte = nn.Embedding(symbols, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(layer(kind, width, heads, mlp_width, dropout, activation, pre_norm)
                               for _ in range(layers))

    def forward(self, tokens, **arguments):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        x = F.dropout(x, self.dropout, self.training)
        memory = arguments.pop("memory", None)
        for block in self.h:
            x = block(x, **arguments) if memory is None else block(x, memory, **arguments)
        return x


class EncoderClassifier(nn.Module):
    """tokens [batch, time], lengths [batch] -> logits [batch, classes]."""

    def __init__(self, layers, width, heads, mlp_width, context, symbols, classes, dropout=0.0,
                 activation="relu", pre_norm=False):
        super().__init__()
        self.encoder = Stack(nn.TransformerEncoderLayer, layers, width, heads, mlp_width, context,
                             symbols, dropout, activation, pre_norm)
        self.ln_f = nn.LayerNorm(width) if pre_norm else None
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens, lengths=None):
        mask = None if lengths is None else padding_mask(lengths, tokens.shape[1])
        first = self.encoder(tokens, src_key_padding_mask=mask)[:, 0]
        return self.classifier(first if self.ln_f is None else self.ln_f(first))


class EncoderDecoder(nn.Module):
    """source, target [batch, time], lengths of the source [batch] -> logits [batch, time, symbols]."""

    def __init__(self, layers, width, heads, mlp_width, context, symbols, dropout=0.0,
                 activation="relu", pre_norm=False, tied=True):
        super().__init__()
        sizes = (layers, width, heads, mlp_width, context, symbols, dropout, activation, pre_norm)
        self.encoder = Stack(nn.TransformerEncoderLayer, *sizes)
        self.ln_memory = nn.LayerNorm(width) if pre_norm else None
        self.decoder = Stack(nn.TransformerDecoderLayer, *sizes)
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = None if tied else nn.Linear(width, symbols, bias=False)

    def forward(self, source, target, lengths=None):
        context = target.shape[1]
        mask = None if lengths is None else padding_mask(lengths, source.shape[1])
        memory = self.encoder(source, src_key_padding_mask=mask)
        if self.ln_memory is not None:
            memory = self.ln_memory(memory)
        future = torch.triu(torch.ones(context, context, dtype=torch.bool), diagonal=1)
        x = self.decoder(target, memory=memory, tgt_mask=future, memory_key_padding_mask=mask)
        head = self.decoder.wte.weight if self.lm_head is None else self.lm_head.weight
        return F.linear(self.ln_f(x), head)


def stack_in_tugs_layout(tensors, stack, prefix):
    """Returns the tensors of one stack with the names and shapes of model/layout.h."""
    ours = {}
    for name in ("wte.weight", "wpe.weight"):
        ours[prefix + name] = tensors[f"{stack}.{name}"]
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith(f"{stack}.h."))
    for index in range(layers):
        theirs, block = f"{stack}.h.{index}.", f"{prefix}h.{index}."
        cross = theirs + "multihead_attn.in_proj_weight" in tensors
        linears = {"attn.c_attn": "self_attn.in_proj_", "attn.c_proj": "self_attn.out_proj.",
                   "mlp.c_fc": "linear1.", "mlp.c_proj": "linear2."}
        norms = {"ln_1": "norm1.", "ln_2": "norm3." if cross else "norm2."}
        if cross:
            linears["cross.c_proj"] = "multihead_attn.out_proj."
            norms["ln_cross"] = "norm2."
            width = tensors[theirs + "norm1.weight"].numel()
            weight = tensors[theirs + "multihead_attn.in_proj_weight"]
            bias = tensors[theirs + "multihead_attn.in_proj_bias"]
            ours[block + "cross.c_q.weight"], ours[block + "cross.c_q.bias"] = \
                weight[:width].t(), bias[:width]
            ours[block + "cross.c_kv.weight"], ours[block + "cross.c_kv.bias"] = \
                weight[width:].t(), bias[width:]
        for our, their in linears.items():
            ours[f"{block}{our}.weight"] = tensors[theirs + their + "weight"].t()
            ours[f"{block}{our}.bias"] = tensors[theirs + their + "bias"]
        for our, their in norms.items():
            ours[f"{block}{our}.weight"] = tensors[theirs + their + "weight"]
            ours[f"{block}{our}.bias"] = tensors[theirs + their + "bias"]
    return ours


def in_tugs_layout(tensors):
    """Converts parameters or gradients of a model above from PyTorch's names and shapes to those of
    model/layout.h."""
    ours = stack_in_tugs_layout(tensors, "encoder", "")
    if "decoder.wte.weight" in tensors:
        ours.update(stack_in_tugs_layout(tensors, "decoder", "decoder."))
    for name in ("ln_f", "ln_memory", "classifier", "lm_head"):
        for part in ("weight", "bias"):
            if f"{name}.{part}" not in tensors:
                continue
            tensor = tensors[f"{name}.{part}"]
            is_linear = f"{name}.{part}" == "classifier.weight"
            our = f"decoder.{name}" if name == "ln_memory" else name
            ours[f"{our}.{part}"] = tensor.t() if is_linear else tensor
    return ours
