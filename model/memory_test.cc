#include "model/memory.h"

#include <gtest/gtest.h>

#include "model/layout.h"

namespace tug {
namespace {

ModelConfig Config(uint32_t layers, uint32_t width, uint32_t heads, uint32_t context) {
  ModelConfig config;
  config.set_layers(layers);
  config.set_width(width);
  config.set_heads(heads);
  config.set_context(context);
  config.set_dropout(0);
  config.set_tied_head(true);
  config.set_bias(true);
  return config;
}

// The formula as written in memory.h; the difference is rounding of each array up to 64 bytes.
TEST(PredictWorkerBytes, FollowsTheFormula) {
  const ModelConfig config = Config(3, 48, 4, 20);
  const uint64_t l = 3, c = 48, h = 4, t = 20, v = 65, n = 5 * t;
  const uint64_t formula = 4 * n * (l * (16 * c + h * t + 4) + 9 * c + v + 3);
  const uint64_t bytes = PredictActivationBytes(config, v, 5);
  EXPECT_GE(bytes, formula);
  EXPECT_LE(bytes, formula + 64 * (13 * l + 10));
}

TEST(PredictWorkerBytes, CountsGradientsPerVirtualWorker) {
  const ModelConfig config = Config(2, 32, 2, 16);
  const uint64_t parameter_bytes = 4 * ElementCount(GptLayout(config, 65));
  EXPECT_EQ(PredictWorkerBytes(config, 65, 4, 1) + 2 * parameter_bytes,
            PredictWorkerBytes(config, 65, 4, 3));
  EXPECT_EQ(PredictWorkerBytes(config, 65, 4, 1),
            2 * parameter_bytes + PredictActivationBytes(config, 65, 4) + kProcessBytes);
}

TEST(PredictWorkerBytes, GrowsWithTheMicroBatch) {
  // The model of the speed comparison: about 204 MB at 4 samples.
  const ModelConfig config = Config(6, 384, 6, 256);
  EXPECT_NEAR(static_cast<double>(PredictActivationBytes(config, 256, 4)), 204e6, 1e6);
  EXPECT_LT(PredictActivationBytes(config, 256, 2), PredictActivationBytes(config, 256, 4));
}

}  // namespace
}  // namespace tug
