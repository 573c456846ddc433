// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulation/cuda_emulation.h"

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
