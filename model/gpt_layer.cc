#include "model/gpt_layer.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/bias.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"

namespace tug {
namespace {

using kernels::MatMul;
using kernels::Transpose;

// y = x W, x [rows, in], W [in, out].
void Linear(const LayerPass& pass, int64_t in, int64_t out, const float* x, const float* w,
            float* y) {
  MatMul(pass.pool, Transpose::kNo, Transpose::kNo, pass.rows(), out, in, x, in, w, out, 0, y, out);
}

// dW (+)= x^T dy, dbias += column sums of dy (dbias may be nullptr), dx = dy W^T.
void LinearBackward(const LayerPass& pass, int64_t in, int64_t out, const float* x, const float* w,
                    const float* dy, bool accumulate, float* dw, float* dbias, float* dx) {
  if (dbias != nullptr) kernels::BiasGradient(pass.pool, pass.rows(), out, dy, dbias);
  MatMul(pass.pool, Transpose::kYes, Transpose::kNo, in, out, pass.rows(), x, in, dy, out,
         accumulate ? 1.0f : 0.0f, dw, out);
  MatMul(pass.pool, Transpose::kNo, Transpose::kYes, pass.rows(), in, out, dy, out, w, out, 0, dx,
         in);
}

kernels::AttentionShape AttentionShapeOf(const LayerPass& pass) {
  return {.batch = pass.samples,
          .seq = pass.seq,
          .heads = pass.shape.heads,
          .head_dim = pass.shape.width / pass.shape.heads};
}

// y = residual + dropout(x + bias).
void AddBranch(const LayerPass& pass, uint32_t site, const float* x, const float* bias,
               const float* residual, float* y) {
  kernels::BiasDropoutAdd(pass.pool, pass.samples, pass.seq * pass.shape.width, pass.shape.width, x,
                          bias, residual, pass.p, DropoutKeyOf(pass.dropout, site), y);
}

// The gradient of a branch's output from the one of the residual stream; without dropout they are
// the same array.
const float* BranchGradient(const LayerPass& pass, uint32_t site, const float* gradient,
                            float* branch_output) {
  if (pass.p == 0) return gradient;
  kernels::DropoutBackward(pass.pool, pass.samples, pass.seq * pass.shape.width, gradient, pass.p,
                           DropoutKeyOf(pass.dropout, site), branch_output);
  return branch_output;
}

// The kernels add to gradients of vectors.
void ZeroVectors(const GptShape& shape, const LayerTensors<float>& dw) {
  const int64_t c = shape.width;
  std::fill_n(dw.ln_1, c, 0.0f);
  std::fill_n(dw.ln_2, c, 0.0f);
  if (!shape.bias) return;
  std::fill_n(dw.ln_1_bias, c, 0.0f);
  std::fill_n(dw.qkv_bias, 3 * c, 0.0f);
  std::fill_n(dw.attn_proj_bias, c, 0.0f);
  std::fill_n(dw.ln_2_bias, c, 0.0f);
  std::fill_n(dw.fc_bias, 4 * c, 0.0f);
  std::fill_n(dw.mlp_proj_bias, c, 0.0f);
}

void AttentionForward(const LayerPass& pass, const LayerTensors<const float>& w, const float* in,
                      float* branch, LayerActivations& a) {
  const int64_t c = pass.shape.width;
  kernels::LayerNormForward(pass.pool, pass.rows(), c, in, w.ln_1, w.ln_1_bias, a.ln_1, a.ln_1_mean,
                            a.ln_1_rstd);
  Linear(pass, c, 3 * c, a.ln_1, w.qkv, a.qkv);
  if (w.qkv_bias != nullptr) {
    kernels::AddBias(pass.pool, pass.rows(), 3 * c, w.qkv_bias, a.qkv);
  }
  kernels::CausalAttentionForward(pass.pool, AttentionShapeOf(pass), a.qkv, pass.p,
                                  DropoutKeyOf(pass.dropout, AttentionSite(pass.layer)), a.probs,
                                  a.mixed);
  Linear(pass, c, c, a.mixed, w.attn_proj, branch);
  AddBranch(pass, AttentionOutputSite(pass.layer), branch, w.attn_proj_bias, in, a.middle);
}

void MlpForward(const LayerPass& pass, const LayerTensors<const float>& w, float* branch,
                LayerActivations& a) {
  const int64_t c = pass.shape.width;
  kernels::LayerNormForward(pass.pool, pass.rows(), c, a.middle, w.ln_2, w.ln_2_bias, a.ln_2,
                            a.ln_2_mean, a.ln_2_rstd);
  Linear(pass, c, 4 * c, a.ln_2, w.fc, a.fc);
  kernels::BiasGeluForward(pass.pool, pass.rows(), 4 * c, w.fc_bias, a.fc, a.gelu);
  Linear(pass, 4 * c, c, a.gelu, w.mlp_proj, branch);
  AddBranch(pass, MlpOutputSite(pass.layer), branch, w.mlp_proj_bias, a.middle, a.out);
}

void MlpBackward(const LayerPass& pass, const LayerTensors<const float>& w,
                 const LayerActivations& a, bool accumulate, const LayerScratch& scratch,
                 float* gradient, const LayerTensors<float>& dw) {
  const int64_t c = pass.shape.width;
  const float* const dout =
      BranchGradient(pass, MlpOutputSite(pass.layer), gradient, scratch.branch_output);
  LinearBackward(pass, 4 * c, c, a.gelu, w.mlp_proj, dout, accumulate, dw.mlp_proj,
                 dw.mlp_proj_bias, scratch.wide);
  kernels::GeluBackward(pass.pool, pass.rows() * 4 * c, scratch.wide, a.fc, scratch.wide);
  LinearBackward(pass, c, 4 * c, a.ln_2, w.fc, scratch.wide, accumulate, dw.fc, dw.fc_bias,
                 scratch.branch);
  kernels::LayerNormBackward(pass.pool, pass.rows(), c, scratch.branch, a.middle, w.ln_2,
                             a.ln_2_mean, a.ln_2_rstd, gradient, dw.ln_2, dw.ln_2_bias);
}

void AttentionBackward(const LayerPass& pass, const LayerTensors<const float>& w, const float* in,
                       const LayerActivations& a, bool accumulate, const LayerScratch& scratch,
                       float* gradient, const LayerTensors<float>& dw) {
  const int64_t c = pass.shape.width;
  const float* const dout =
      BranchGradient(pass, AttentionOutputSite(pass.layer), gradient, scratch.branch_output);
  LinearBackward(pass, c, c, a.mixed, w.attn_proj, dout, accumulate, dw.attn_proj,
                 dw.attn_proj_bias, scratch.branch);
  kernels::CausalAttentionBackward(
      pass.pool, AttentionShapeOf(pass), scratch.branch, a.qkv, a.probs, pass.p,
      DropoutKeyOf(pass.dropout, AttentionSite(pass.layer)), scratch.wide);
  LinearBackward(pass, c, 3 * c, a.ln_1, w.qkv, scratch.wide, accumulate, dw.qkv, dw.qkv_bias,
                 scratch.branch);
  kernels::LayerNormBackward(pass.pool, pass.rows(), c, scratch.branch, in, w.ln_1, a.ln_1_mean,
                             a.ln_1_rstd, gradient, dw.ln_1, dw.ln_1_bias);
}

}  // namespace

void LayerForward(const LayerPass& pass, const LayerTensors<const float>& w, const float* in,
                  float* branch, LayerActivations& a) {
  AttentionForward(pass, w, in, branch, a);
  MlpForward(pass, w, branch, a);
}

void LayerBackward(const LayerPass& pass, const LayerTensors<const float>& w, const float* in,
                   const LayerActivations& a, bool accumulate, const LayerScratch& scratch,
                   float* gradient, const LayerTensors<float>& dw) {
  if (!accumulate) ZeroVectors(pass.shape, dw);
  MlpBackward(pass, w, a, accumulate, scratch, gradient, dw);
  AttentionBackward(pass, w, in, a, accumulate, scratch, gradient, dw);
}

}  // namespace tug
