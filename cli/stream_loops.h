#ifndef TUG_CLI_STREAM_LOOPS_H_
#define TUG_CLI_STREAM_LOOPS_H_

#include <cstdint>
#include <string>

namespace tug {

// The raw limit that memory-bound kernels are measured against: plain loops, left to the compiler,
// with the widest instructions of this machine. McCalpin 1995, "Memory bandwidth and machine
// balance in current high performance computers" (STREAM); `a += b` is its sum in place, what a
// server does with gradients. One thread; arrays [n] do not overlap. Thread-safe.

void StreamAdd(float* a, const float* b, int64_t n);  // a += b
void StreamTriad(float* a, const float* b, const float* c, float factor,
                 int64_t n);  // b + factor c
// The sum of x as integers: a loop that only reads.
uint32_t StreamRead(const uint32_t* x, int64_t n);

// The instruction set that these loops and the kernels run with here, as Highway names it.
std::string InstructionSet();

}  // namespace tug

#endif  // TUG_CLI_STREAM_LOOPS_H_
