// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LIMITS_STREAM_LOOPS_H_
#define TUG_LIMITS_STREAM_LOOPS_H_

#include <cstdint>
#include <string>

namespace tug {

// Reference for memory-bound kernels: plain loops, vectorised by the compiler with the widest
// instructions of this machine. McCalpin 1995, "Memory bandwidth and machine balance in current
// high performance computers" (STREAM); `a += b` is its sum in place, a server's operation on
// gradients. One thread; arrays [n] do not overlap. Thread-safe.

void StreamAdd(float* a, const float* b, int64_t n);  // a += b
void StreamTriad(float* a, const float* b, const float* c, float factor,
                 int64_t n);  // b + factor c
// Sum of x as integers: a read-only loop.
uint32_t StreamRead(const uint32_t* x, int64_t n);

// Instruction set of these loops and of the kernels on this machine, in Highway's notation.
std::string InstructionSet();

}  // namespace tug

#endif  // TUG_LIMITS_STREAM_LOOPS_H_
