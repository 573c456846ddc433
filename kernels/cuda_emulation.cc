#include "kernels/cuda_emulation.h"

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
