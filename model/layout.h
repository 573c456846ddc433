// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYOUT_H_
#define TUG_MODEL_LAYOUT_H_

#include <cstdint>

#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Sizes and kinds that determine everything in model/.
struct ModelShape {
  ModelConfig::Family family = ModelConfig::DECODER;
  ModelConfig::NormPlace norm = ModelConfig::PRE;
  ModelConfig::Activation activation = ModelConfig::GELU;
  int64_t layers = 0;     // L, per stack
  int64_t width = 0;      // C
  int64_t mlp_width = 0;  // M
  int64_t heads = 0;      // H
  int64_t context = 0;    // T
  int64_t symbols = 0;    // V
  int64_t classes = 0;    // K, ENCODER only
  bool tied_head = false;
  bool bias = false;

  bool pre_norm() const { return norm == ModelConfig::PRE; }
  // Whether there is a second stack, which reads the output of the first.
  bool has_decoder_stack() const { return family == ModelConfig::ENCODER_DECODER; }
  int64_t stacks() const { return has_decoder_stack() ? 2 : 1; }
};

// Here and below, `symbols` is the tokenizer's count and `classes` the data's; the model may have
// more (`model.vocabulary`, `model.classes`). `config` has all fields filled.
ModelShape ModelShapeOf(const ModelConfig& config, uint32_t symbols, uint32_t classes);

// Parameters of the models of model/model.h: names (GPT-2's), shapes, storage order, initial
// values. Coordinator and servers know a model only by its block table.
//
// Blocks in forward order. The tensors of a block are stored consecutively in the order shown,
// matrices (with weight decay) first, each row-major:
//   "embedding"          wte.weight [V, C], wpe.weight [T, C]
//   "h.0" .. "h.<L-1>"   attn.c_attn.weight [C, 3C], attn.c_proj.weight [C, C],
//                        mlp.c_fc.weight [C, M], mlp.c_proj.weight [M, C];
//                        ln_1.weight [C], ln_1.bias [C],
//                        attn.c_attn.bias [3C], attn.c_proj.bias [C],
//                        ln_2.weight [C], ln_2.bias [C],
//                        mlp.c_fc.bias [M], mlp.c_proj.bias [C],
//                        each name prefixed by the block's name and a dot
//   "head"               lm_head.weight [V, C], only without `tied_head`;
//                        ln_f.weight [C], ln_f.bias [C]
// ENCODER, instead of the head:
//   "classifier"         classifier.weight [C, K];
//                        with PRE ln_f.weight [C], ln_f.bias [C];
//                        classifier.bias [K]
// ENCODER_DECODER, between the layers (the encoder's) and the head:
//   "decoder.embedding"  wte.weight [V, C], wpe.weight [T, C];
//                        with PRE ln_memory.weight [C], ln_memory.bias [C]: the norm after the
//                        encoder, whose output is first read here
//   "decoder.h.0" ..     like "h.0", and after attn.c_proj.weight:
//                        cross.c_q.weight [C, C], cross.c_kv.weight [C, 2C],
//                        cross.c_proj.weight [C, C];
//                        after attn.c_proj.bias:
//                        ln_cross.weight [C], ln_cross.bias [C],
//                        cross.c_q.bias [C], cross.c_kv.bias [2C], cross.c_proj.bias [C]
//   (names prefixed by "decoder." or by the block's name and a dot)
// Without `bias` the *.bias tensors are absent. c_attn's columns are q, k, v, those of c_kv k, v,
// each of them H heads of C / H. The head keeps ln_f with POST too, as PyTorch's nn.Transformer
// does: otherwise a tied head would be a block without parameters.
//
// Linear layers are [in, out], y = x W, as in GPT-2's checkpoints (PyTorch's Linear is the
// transpose).
//
// Initial values as in GPT-2: matrices normal(0, 0.02), c_proj.weight normal(0, 0.02 / sqrt(b))
// with b residual branches in its stack (2 L; with cross-attention 3 L), LayerNorm weights 1,
// biases 0.
//
// `config` has all fields filled and is valid. Pure, thread-safe.
BlockTable ModelLayout(const ModelConfig& config, uint32_t symbols, uint32_t classes);

// The block whose wte.weight is the head's matrix if `tied_head` is set.
int TiedBlockOf(const ModelShape& shape);

// Elements of a tensor, of a block, of all blocks.
uint64_t ElementCount(const TensorSpec& tensor);
uint64_t ElementCount(const BlockSpec& block);
uint64_t ElementCount(const BlockTable& table);

}  // namespace tug

#endif  // TUG_MODEL_LAYOUT_H_
