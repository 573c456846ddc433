// SPDX-License-Identifier: Apache-2.0
#include "limits/stream_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "limits/stream_loops.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tug::HWY_NAMESPACE {

void StreamAdd(float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) a[i] += b[i];
}

void StreamTriad(float* HWY_RESTRICT a, const float* HWY_RESTRICT b, const float* HWY_RESTRICT c,
                 float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] + factor * c[i];
}

uint32_t StreamRead(const uint32_t* x, int64_t n) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

int64_t Target() { return HWY_TARGET; }

}  // namespace tug::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {

HWY_EXPORT(StreamAdd);
HWY_EXPORT(StreamTriad);
HWY_EXPORT(StreamRead);
HWY_EXPORT(Target);

void StreamAdd(float* a, const float* b, int64_t n) { HWY_DYNAMIC_DISPATCH(StreamAdd)(a, b, n); }

void StreamTriad(float* a, const float* b, const float* c, float factor, int64_t n) {
  HWY_DYNAMIC_DISPATCH(StreamTriad)(a, b, c, factor, n);
}

uint32_t StreamRead(const uint32_t* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(StreamRead)(x, n); }

std::string InstructionSet() { return hwy::TargetName(HWY_DYNAMIC_DISPATCH(Target)()); }

}  // namespace tug
#endif  // HWY_ONCE
