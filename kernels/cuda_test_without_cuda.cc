// In place of a test of a kernel where the build is without CUDA.
#include "gtest/gtest.h"

TEST(Cuda, IsNotInThisBuild) { GTEST_SKIP() << "skipped: no GPU (built without --config=cuda)"; }
