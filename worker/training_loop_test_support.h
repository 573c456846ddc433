// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_TRAINING_LOOP_TEST_SUPPORT_H_
#define TUG_WORKER_TRAINING_LOOP_TEST_SUPPORT_H_

// A training loop with its own lane, for tests of training_loop.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "blocks/runs.h"
#include "compression/codecs/frames.h"
#include "config/placement_mode.h"
#include "exchange/encode/device_encoder.h"
#include "kernels/bf16.h"
#include "model/transformer/memory.h"
#include "optimizer/optimizer.h"
#include "transport/answering_transport.h"
#include "worker/gradients/residual_writer.h"
#include "worker/training_loop.h"
#include "worker/training_rig.h"

namespace tug {

inline constexpr uint32_t kVirtualWorkers = 3;
inline constexpr uint64_t kSegment = 256;
inline constexpr PeerId kLane = LanePeer(0);

// Observed traffic of a lane.
struct Traffic {
  uint64_t pushed_bytes = 0;
  uint64_t pulled_bytes = 0;
  uint64_t runs = 0;         // messages of codec kRuns
  uint64_t frames = 0;       // in messages of codec kFrames
  uint64_t copies_held = 0;  // versions of weights that were still read when the next was made
};

// One lane that owns everything and implements the wire's contract in the simplest way: whole
// gradients in memory, and a dense update once all of a block's have arrived. It answers inside the
// transport of the one worker.
class PlainLane final : public AnsweringTransport {
 public:
  using Hook = std::function<void(const WireHeader&)>;

  PlainLane(const JobConfig& config, const SegmentTable& table, bool in_place, Hook on_message,
            Traffic& traffic, std::vector<std::vector<float>>& result)
      : table_(table),
        in_place_(in_place),
        on_message_(std::move(on_message)),
        optimizer_(MakeLaneOptimizer(config.optimizer(), config.sync())),
        traffic_(traffic),
        result_(result) {
    for (uint32_t b = 0; b < table.num_blocks(); ++b) {
      const uint64_t elements = table.block_elements(b);
      Block& block = blocks_.emplace_back();
      block.weights = std::make_shared<AlignedBuffer>(elements * sizeof(float));
      for (uint64_t e = 0; e < elements; ++e) {
        block.weights->floats()[e] = 0.02f * static_cast<float>((e * 2654435761u + b) % 101) - 1.0f;
      }
      block.m.resize(elements);
      block.v.resize(elements);
      block.gradients.assign(kVirtualWorkers, std::vector<float>(elements));
    }
  }
  ~PlainLane() override {
    for (Block& block : blocks_) {
      const std::span<const float> weights = std::as_const(*block.weights).floats();
      result_.emplace_back(weights.begin(), weights.end());
    }
  }

  absl::Status Send(Outgoing message) override {
    if (on_message_) on_message_(message.header);
    if (message.header.kind == MessageKind::kPush) {
      OnPush(message);
    } else {
      blocks_[message.header.block].waiting.push_back(std::move(message));
    }
    for (Block& block : blocks_) AnswerPulls(block);
    return absl::OkStatus();
  }

 private:
  struct Block {
    uint64_t version = 0;
    std::shared_ptr<AlignedBuffer> weights;
    std::vector<float> m, v;
    std::vector<std::vector<float>> gradients;  // by virtual worker
    std::vector<WireHeader> pushes;             // of the current clock
    uint64_t elements_in = 0;
    uint64_t tokens = 0;
    std::deque<Outgoing> waiting;  // pulls
  };

  std::pair<uint64_t, uint64_t> RangeOf(const WireHeader& header) const {
    const uint32_t first = table_.id(header.block, header.first_segment);
    return {table_.segment(first).begin, table_.segment(first + header.segment_count - 1).end};
  }
  void Answer(WireHeader header, MessageKind kind, Lease payload = {}, bool in_place = false) {
    header.kind = kind;
    header.sender = kLane;
    AnsweringTransport::Answer(
        {header, std::move(payload), in_place ? Home::kSender : Home::kReceiver});
  }

  void TakeFrames(const WireHeader& header, std::span<const std::byte> payload,
                  std::span<float> out) {
    for (uint32_t i = 0; i < header.segment_count; ++i) {
      const Segment& segment = table_.segment(table_.id(header.block, header.first_segment + i));
      const std::optional<Frame> frame = TakeFrame(segment.elements(), payload);
      ASSERT_TRUE(frame.has_value());
      ASSERT_TRUE(DecodeFrame(*frame, DecodeTo::kStore, out.first(segment.elements())));
      out = out.subspan(segment.elements());
      ++traffic_.frames;
    }
    EXPECT_TRUE(payload.empty());
  }

  void OnPush(const Outgoing& push) {
    const WireHeader& header = push.header;
    Block& block = blocks_[header.block];
    ASSERT_EQ(header.clock, block.version);
    const auto [begin, end] = RangeOf(header);
    const std::span<float> out =
        std::span(block.gradients[header.virtual_worker]).subspan(begin, end - begin);
    const std::span<const std::byte> payload = push.payload.bytes();
    std::fill(out.begin(), out.end(), 0.0f);
    if (header.codec == Codec::kRuns) {
      const std::optional<EncodedRuns> runs = DecodeRuns(payload, out.size(), true);
      ASSERT_TRUE(runs.has_value());
      Scatter(*runs, out);
      ++traffic_.runs;
    } else if (header.codec == Codec::kFrames) {
      TakeFrames(header, payload, out);
    } else {
      std::memcpy(out.data(), payload.data(), payload.size());
    }
    traffic_.pushed_bytes += payload.size();
    block.pushes.push_back(header);
    block.elements_in += out.size();
    if (begin == 0) block.tokens += header.token_count;
    Answer(header, MessageKind::kReceived);
    if (block.elements_in == kVirtualWorkers * block.m.size()) Update(header.block);
  }

  void Update(uint32_t b) {
    Block& block = blocks_[b];
    std::vector<float>& sum = block.gradients[0];
    for (uint32_t v = 1; v < kVirtualWorkers; ++v) {
      for (size_t e = 0; e < sum.size(); ++e) sum[e] += block.gradients[v][e];
    }
    auto next = std::make_shared<AlignedBuffer>(block.weights->size_bytes());
    const float scale = 1.0f / static_cast<float>(block.tokens);
    optimizer_->Update({.t = block.version,
                        .position = static_cast<double>(block.version),
                        .gradient_scale = scale},
                       {.gradient = sum,
                        .weights_in = std::as_const(*block.weights).floats(),
                        .weights_out = next->floats(),
                        .m = block.m,
                        .v = block.v});
    if (block.weights.use_count() > 1) ++traffic_.copies_held;
    block.weights = std::move(next);
    ++block.version;
    for (const WireHeader& push : block.pushes) Answer(push, MessageKind::kCommitted);
    block.pushes.clear();
    block.elements_in = 0;
    block.tokens = 0;
  }

  void AnswerPulls(Block& block) {
    while (!block.waiting.empty() && block.waiting.front().header.clock == block.version) {
      const Outgoing pull = std::move(block.waiting.front());
      block.waiting.pop_front();
      const auto [begin, end] = RangeOf(pull.header);
      const Lease weights = Lease(block.weights, std::as_const(*block.weights).floats())
                                .Slice(begin * sizeof(float), (end - begin) * sizeof(float));
      Lease payload = weights;
      if (pull.header.codec == Codec::kRuns) {
        const std::optional<EncodedRuns> runs =
            DecodeRuns(pull.payload.bytes(), end - begin, false);
        ASSERT_TRUE(runs.has_value());
        auto bytes = std::make_shared<AlignedBuffer>(EncodedBytes(runs->runs, true));
        EncodeRuns(runs->runs, weights.floats(), {bytes->data(), bytes->size_bytes()});
        payload = Lease(bytes, std::as_const(*bytes).floats());
        ++traffic_.runs;
      } else if (pull.header.codec == Codec::kBf16) {
        auto bytes = std::make_shared<AlignedBuffer>((end - begin) * sizeof(kernels::Bf16));
        kernels::Bf16FromFloat(weights.floats().data(),
                               reinterpret_cast<kernels::Bf16*>(bytes->data()),
                               static_cast<int64_t>(end - begin));
        payload = Lease(bytes, std::span<const std::byte>(bytes->data(), bytes->size_bytes()));
      }
      traffic_.pulled_bytes += payload.size_bytes();
      WireHeader header = pull.header;
      header.version = block.version;
      Answer(header, MessageKind::kWeights, std::move(payload), in_place_);
    }
  }

  const SegmentTable& table_;
  const bool in_place_;
  const Hook on_message_;
  const std::unique_ptr<const Optimizer> optimizer_;
  Traffic& traffic_;
  std::vector<std::vector<float>>& result_;
  std::vector<Block> blocks_;
};

struct Outcome {
  absl::Status end;
  std::vector<std::vector<float>> weights;  // by block
  std::vector<std::string> reports;         // losses of steps and evaluations
  std::vector<double> losses;               // from the step reports
  std::vector<uint32_t> schedules;          // from the step reports
  std::vector<double> residual_squares;     // from the step reports
  Traffic traffic;
  HeldBytes held;
  HeldBytes predicted_held;
  uint64_t targets = 0;  // of all steps
  uint64_t correct = 0;
};

class TrainingLoopTest : public testing::Test {
 protected:
  TrainingLoopTest() : config_(SmallJob(kVirtualWorkers, kSegment)) {
    const std::string lines = testing::TempDir() + "/lines.txt";
    std::ofstream lines_out(lines);
    for (int i = 0; i < 100; ++i) lines_out << i % 3 << "\tw" << i * i % 97 << " x\n";
    config_.mutable_model()->set_dropout(0.1);
  }

  // Trains five steps, with evaluations at 2, 4 and the end. `script`: the coordinator's orders in
  // reaction to the worker's messages.
  Outcome Train(bool in_place = false,
                const std::function<void(ControlBoard&, const WireHeader&)>& script = nullptr) {
    Outcome outcome;
    TrainingRig rig(config_);
    const std::unique_ptr<Model> own = model_of_ ? model_of_(rig) : nullptr;
    Model& model = own != nullptr ? *own : rig.model();
    const SegmentTable& table = rig.table();
    ControlBoard board;
    board.SetOrders({.go = true, .pause = false, .final_version = script ? 0u : steps_});
    PlainLane::Hook hook;
    if (script) hook = [&](const WireHeader& header) { script(board, header); };
    ExchangeClient exchange({.job = 1,
                             .timeline = 1,
                             .view = 1,
                             .lane_of_segment = std::vector<uint32_t>(table.size(), 0),
                             .comm = config_.comm(),
                             .frees_gradients = PlacementModeOf(config_).frees_gradients,
                             .block_names = BlockNames(model.blocks()),
                             .seed = config_.seed()},
                            table,
                            std::make_unique<PlainLane>(config_, table, in_place, hook,
                                                        outcome.traffic, outcome.weights));
    std::vector<uint32_t> carried;
    for (uint32_t v = 0; v < kVirtualWorkers; ++v) carried.push_back(v);
    TrainingLoopOptions options{config_, carried, 0};
    WorkerHolding holding = WorkerHoldingOf(config_, kVirtualWorkers);
    holding.on_gpu = model.queues();
    options.encoder = encoder_.get();
    std::optional<ResidualWriter> residuals;
    if (saves_residuals_) {
      residuals.emplace(ResidualWriter::Options{testing::TempDir(), BlockNames(model.blocks())},
                        table);
      options.residuals = &*residuals;
    }
    if (in_place) options.in_place = holding.in_place = std::vector<bool>(table.num_blocks(), true);
    TrainingLoop loop(options, table, model, rig.sampler(), exchange, board);
    outcome.end = loop.Run();
    EXPECT_EQ(outcome.end, expected_end_);
    outcome.held = loop.held();
    outcome.predicted_held =
        PredictHeldBytes(rig.model_options(), config_.comm().pull_format(), holding);
    HeartbeatRequest beat;
    board.AddTo(beat);
    AddReports(beat, outcome);
    return outcome;
  }
  static void AddReports(const HeartbeatRequest& beat, Outcome& outcome) {
    for (const StepReport& step : beat.steps()) {
      EXPECT_GT(step.compute_seconds(), 0);
      EXPECT_GT(step.communication_seconds(), 0);
      EXPECT_LE(step.compute_seconds() + step.wait_seconds(), step.step_seconds());
      EXPECT_LE(step.communication_seconds(), step.step_seconds());
      outcome.reports.push_back(absl::StrCat("step ", step.clock(), " ", step.virtual_worker(), " ",
                                             absl::Hex(Bits(step.loss_sum())), " ", step.targets(),
                                             " ", step.tokens()));
      outcome.schedules.push_back(step.schedule());
      outcome.residual_squares.push_back(step.residual_squares());
      outcome.losses.push_back(step.loss_sum());
      outcome.targets += step.targets();
      outcome.correct += step.correct();
    }
    for (const EvalReport& eval : beat.evals()) {
      outcome.reports.push_back(absl::StrCat("eval ", eval.version(), " ", eval.virtual_worker(),
                                             " ", absl::Hex(Bits(eval.loss_sum())), " ",
                                             eval.targets(), " ", eval.correct()));
    }
  }
  static uint64_t Bits(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }

  static void ExpectSameBits(const Outcome& a, const Outcome& b) {
    EXPECT_GE(a.reports.size(), (3 + 2) * kVirtualWorkers);
    EXPECT_EQ(a.reports, b.reports);
    ASSERT_EQ(a.weights.size(), b.weights.size());
    for (size_t block = 0; block < a.weights.size(); ++block) {
      EXPECT_EQ(0, std::memcmp(a.weights[block].data(), b.weights[block].data(),
                               a.weights[block].size() * sizeof(float)))
          << block;
    }
  }

  JobConfig config_;
  uint64_t steps_ = 5;
  // Makes the model; empty: on the CPU.
  std::function<std::unique_ptr<Model>(TrainingRig&)> model_of_;
  std::unique_ptr<DeviceEncoder> encoder_;  // of the model of model_of_; null: the exchange encodes
  bool saves_residuals_ = false;            // at the last checkpoint
  absl::Status expected_end_;
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_LOOP_TEST_SUPPORT_H_
