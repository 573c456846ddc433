#ifndef TUG_MODEL_LAYOUT_H_
#define TUG_MODEL_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Sizes that all shapes are made of.
struct GptShape {
  int64_t layers = 0;   // L
  int64_t width = 0;    // C
  int64_t heads = 0;    // H
  int64_t context = 0;  // T
  int64_t symbols = 0;  // V
  bool tied_head = false;
  bool bias = false;
};

// Throughout, `symbols` are those of the tokenizer; the model may have more (`model.vocabulary`).
GptShape GptShapeOf(const ModelConfig& config, uint32_t symbols);

// The parameters of the GPT of model/gpt.h: names (GPT-2's), shapes, order of storage, initial
// values. The block table is all that coordinator and servers know of a model.
//
// Blocks in forward order; the tensors of a block lie one behind the other in the order shown,
// matrices (weight decay) first, each row-major:
//   "embedding"          wte.weight [V, C], wpe.weight [T, C]
//   "h.0" .. "h.<L-1>"   attn.c_attn.weight [C, 3C], attn.c_proj.weight [C, C],
//                        mlp.c_fc.weight [C, 4C], mlp.c_proj.weight [4C, C];
//                        ln_1.weight [C], ln_1.bias [C],
//                        attn.c_attn.bias [3C], attn.c_proj.bias [C],
//                        ln_2.weight [C], ln_2.bias [C],
//                        mlp.c_fc.bias [4C], mlp.c_proj.bias [C],
//                        each name with the block's name and a dot in front
//   "head"               lm_head.weight [V, C], without `tied_head` only;
//                        ln_f.weight [C], ln_f.bias [C]
// Without `bias` the *.bias tensors are absent. c_attn's columns are q, k, v, each of them H heads
// of C / H.
//
// Linear layers are [in, out], y = x W, as in GPT-2's checkpoints (PyTorch's Linear is the
// transpose). For speed the two ways are equal: forward, input gradient and weight gradient are
// then NN, NT and TN products instead of NT, NN and TN, and oneDNN's sgemm runs NN and TN at 108 to
// 115, NT at 102 to 112 GFLOP/s a core at the shapes of a 384-wide model.
//
// Initial values as GPT-2: matrices normal(0, 0.02), c_proj.weight normal(0, 0.02 / sqrt(2 L)),
// LayerNorm weights 1, biases 0.
//
// `config` has all fields filled and is valid. Pure, thread-safe.
BlockTable GptLayout(const ModelConfig& config, uint32_t symbols);

// Elements of a tensor, of all tensors of a block, of all blocks.
uint64_t ElementCount(const TensorSpec& tensor);
uint64_t ElementCount(const BlockSpec& block);
uint64_t ElementCount(const BlockTable& table);

}  // namespace tug

#endif  // TUG_MODEL_LAYOUT_H_
