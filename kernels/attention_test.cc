#include "kernels/attention.h"

#include "gtest/gtest.h"
#include "kernels/attention_ref.h"
#include "kernels/dropout_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

constexpr DropoutKey kKey{.seed = 11, .step = 2, .sample = 9, .site = 4};

AttentionDropoutRef DropoutOf(float p) {
  return [p](int64_t sample, int64_t element) {
    const bool keep = p == 0 || DropoutKeepsRef(kKey, static_cast<uint32_t>(sample), element, p);
    return keep ? 1.0 / (1.0 - static_cast<double>(p)) : 0.0;
  };
}

struct Result {
  std::vector<float> probs, out, dqkv;
};

Result RunKernel(int threads, const AttentionShape& shape, float p) {
  ThreadPool pool(threads);
  const float nan = std::nanf("");  // of what must be written before it is read
  const auto qkv = RandomFloats(shape.qkv_size(), 1, 2.0f);
  const auto dout = RandomFloats(shape.out_size(), 2);
  Result r{std::vector<float>(shape.probs_size(), nan), std::vector<float>(shape.out_size(), nan),
           std::vector<float>(shape.qkv_size(), nan)};
  CausalAttentionForward(pool, shape, qkv.data(), p, kKey, r.probs.data(), r.out.data());
  CausalAttentionBackward(pool, shape, dout.data(), qkv.data(), r.probs.data(), p, kKey,
                          r.dqkv.data());
  return r;
}

// Keys after the query: 0 or not written.
void ZeroFuture(const AttentionShape& shape, std::vector<float>& probs) {
  for (int64_t i = 0; i < shape.probs_size(); ++i) {
    const bool future = i % shape.seq > i / shape.seq % shape.seq;
    if (!future) continue;
    EXPECT_TRUE(std::isnan(probs[i]) || probs[i] == 0.0f);
    probs[i] = 0.0f;
  }
}

void ExpectMatchesReference(const AttentionShape& shape, float p) {
  SCOPED_TRACE(testing::Message() << shape.batch << " x " << shape.seq << " x " << shape.heads
                                  << " x " << shape.head_dim << " p " << p);
  const auto qkv = ToDouble(RandomFloats(shape.qkv_size(), 1, 2.0f));
  const auto dout = ToDouble(RandomFloats(shape.out_size(), 2));
  std::vector<double> probs(shape.probs_size()), out(shape.out_size()), dqkv(shape.qkv_size());
  CausalAttentionForwardRef<double>(shape, qkv.data(), DropoutOf(p), probs.data(), out.data());
  CausalAttentionBackwardRef<double>(shape, dout.data(), qkv.data(), probs.data(), DropoutOf(p),
                                     dqkv.data());
  Result one = RunKernel(1, shape, p);
  for (const int threads : {2, 3}) {
    const Result many = RunKernel(threads, shape, p);
    ExpectSameBits(many.out, one.out);
    ExpectSameBits(many.dqkv, one.dqkv);
  }
  ZeroFuture(shape, one.probs);
  ExpectClose(one.probs, probs, 1e-6, 1e-5);
  ExpectClose(one.out, out, 5e-6, 5e-6);
  ExpectClose(one.dqkv, dqkv, 2e-5, 1e-5);
}

TEST(CausalAttention, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const float p : {0.0f, 0.2f}) {
    for (const int64_t seq : {0, 1, 31, 32, 33, 64, 65, 130}) {
      ExpectMatchesReference({.batch = 2, .seq = seq, .heads = 3, .head_dim = 8}, p);
    }
    for (const int64_t head_dim : {1, 31, 32, 33}) {
      ExpectMatchesReference({.batch = 1, .seq = 20, .heads = 2, .head_dim = head_dim}, p);
    }
    ExpectMatchesReference({.batch = 0, .seq = 20, .heads = 2, .head_dim = 8}, p);
    ExpectMatchesReference({.batch = 1, .seq = 256, .heads = 2, .head_dim = 64}, p);
  }
  ExpectMatchesReference({.batch = 1, .seq = 1023, .heads = 1, .head_dim = 16}, 0.1f);
}

TEST(CausalAttention, AnOutputDoesNotDependOnLaterPositions) {
  ThreadPool pool(1);
  const AttentionShape shape{.batch = 1, .seq = 100, .heads = 2, .head_dim = 16};
  auto qkv = RandomFloats(shape.qkv_size(), 1);
  std::vector<float> probs(shape.probs_size()), before(shape.out_size()), after(shape.out_size());
  CausalAttentionForward(pool, shape, qkv.data(), 0, kKey, probs.data(), before.data());
  for (int64_t i = 70 * 3 * shape.width(); i < shape.qkv_size(); ++i) qkv[i] += 1.0f;
  CausalAttentionForward(pool, shape, qkv.data(), 0, kKey, probs.data(), after.data());
  const auto size = 70 * shape.width();
  ExpectSameBits({before.begin(), before.begin() + size}, {after.begin(), after.begin() + size});
}

TEST(CausalAttention, ASamplesBitsDoNotDependOnItsBatch) {
  ThreadPool pool(2);
  const AttentionShape shape{.batch = 3, .seq = 70, .heads = 2, .head_dim = 16};
  const auto qkv = RandomFloats(shape.qkv_size(), 1);
  std::vector<float> probs(shape.probs_size()), out(shape.out_size());
  CausalAttentionForward(pool, shape, qkv.data(), 0.2f, kKey, probs.data(), out.data());
  AttentionShape one = shape;
  one.batch = 1;
  for (uint32_t s = 0; s < 3; ++s) {
    DropoutKey key = kKey;
    key.sample += s;
    std::vector<float> part(one.out_size());
    CausalAttentionForward(pool, one, qkv.data() + s * one.qkv_size(), 0.2f, key, probs.data(),
                           part.data());
    ExpectSameBits(part,
                   {out.begin() + s * one.out_size(), out.begin() + (s + 1) * one.out_size()});
  }
}

TEST(CausalAttention, ReferenceGradientsAreFiniteDifferences) {
  const AttentionShape shape{.batch = 2, .seq = 5, .heads = 2, .head_dim = 3};
  const auto qkv = ToDouble(RandomFloats(shape.qkv_size(), 1));
  const auto w = ToDouble(RandomFloats(shape.out_size(), 2));
  for (const float p : {0.0f, 0.4f}) {
    std::vector<double> probs(shape.probs_size()), out(shape.out_size()), dqkv(shape.qkv_size());
    const auto loss = [&](const std::vector<double>& at) {
      CausalAttentionForwardRef<double>(shape, at.data(), DropoutOf(p), probs.data(), out.data());
      return Dot(w, out);
    };
    loss(qkv);
    CausalAttentionBackwardRef<double>(shape, w.data(), qkv.data(), probs.data(), DropoutOf(p),
                                       dqkv.data());
    ExpectClose(dqkv, FiniteDifferences(qkv, loss), 1e-8, 1e-8);
  }
}

}  // namespace
}  // namespace tug::kernels
