// SPDX-License-Identifier: Apache-2.0
// Replaces a kernel's test in builds without CUDA.
#include "gtest/gtest.h"

TEST(Cuda, IsNotInThisBuild) { GTEST_SKIP() << "skipped: no GPU (built without --config=cuda)"; }
