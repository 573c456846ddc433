// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/critical_path.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/process_name.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000;
constexpr uint32_t kBlocks = 4;
constexpr uint32_t kServers = 2;  // nodes 1 and 2
constexpr uint32_t kWorkers = 3;  // nodes 3, 4 and 5
constexpr uint64_t kSteps = 6;

constexpr uint32_t WorkerId(uint32_t worker) { return 1 + kServers + worker; }
constexpr uint32_t ServerOf(uint32_t block) { return 1 + block % kServers; }
std::string NameOf(uint32_t node) {
  return node <= kServers ? ProcessName(kServerRole, node - 1)
                          : ProcessName(kWorkerRole, node - 1 - kServers);
}

// A part of a chain without its times.
using Link = std::tuple<PathWork, std::string, std::string>;

// A simulated job with random times, where each moment records what it waited for: its chains are
// known before the trace is recorded.
class PlayedJob {
 public:
  explicit PlayedJob(uint32_t seed) : random_(seed) {
    for (uint32_t node = 1; node <= kServers + kWorkers; ++node) {
      TracedNode traced{
          .node_id = node, .kind = node <= kServers ? SERVER : WORKER, .name = NameOf(node)};
      const uint32_t tracks = node <= kServers ? kBlocks : 2;
      traced.tracks.resize(tracks);
      trace_.nodes.push_back(traced);
    }
    for (uint32_t block = 0; block < kBlocks; ++block) {
      trace_.block_names.push_back(absl::StrCat("h.", block));
    }
    trace_.range = {1, kSteps};
    Play();
  }

  JobTrace trace_;
  std::vector<int64_t> ends_;               // by step
  std::vector<std::vector<Link>> planted_;  // by step

 private:
  // A moment, and the part of the chain that led to it from the moment before.
  struct Moment {
    int64_t at_ns = 0;
    int before = -1;  // index of moments_
    Link link;
  };

  int64_t Draw(int64_t min_ms, int64_t max_ms) {
    return std::uniform_int_distribution<int64_t>(min_ms * kMs, max_ms * kMs)(random_);
  }
  int Add(int before, int64_t lasts_ns, PathWork what, const std::string& who, uint32_t block) {
    const int64_t at_ns = (before < 0 ? 0 : moments_[static_cast<size_t>(before)].at_ns) + lasts_ns;
    moments_.push_back({at_ns, before, {what, who, trace_.block_names[block]}});
    return static_cast<int>(moments_.size()) - 1;
  }
  int64_t At(int moment) const {
    return moment < 0 ? 0 : moments_[static_cast<size_t>(moment)].at_ns;
  }
  int Later(int a, int b) const { return At(a) >= At(b) ? a : b; }
  TraceEvent Span(TraceKind kind, uint32_t block, uint64_t clock, int64_t begin, int64_t end) {
    return {.kind = kind,
            .block = block,
            .segment_count = 1,
            .clock = clock,
            .begin_ns = begin,
            .end_ns = end};
  }
  void Record(uint32_t node, uint32_t track, const TraceEvent& event) {
    trace_.nodes[node - 1].tracks[track].events.push_back(event);
  }

  void Play() {
    std::array<int, kWorkers> now;
    now.fill(-1);
    std::array<std::array<int, kBlocks>, kWorkers> arrived;  // weights
    for (auto& of_worker : arrived) of_worker.fill(-1);
    for (uint64_t clock = 0; clock < kSteps; ++clock) {
      std::array<std::array<int, kBlocks>, kWorkers> gradients;
      int last = -1;
      for (uint32_t w = 0; w < kWorkers; ++w) {
        const int64_t began = At(now[w]);
        now[w] = Compute(w, clock, now[w], arrived[w], gradients[w]);
        TraceEvent step = Span(TraceKind::kStep, 0, clock, began, At(now[w]));
        step.segment_count = 0;
        Record(WorkerId(w), 0, step);
        last = last < 0 ? now[w] : Later(now[w], last);
      }
      for (uint32_t block = kBlocks; block-- > 0;) Exchange(clock, block, gradients, arrived);
      Plant(last);
    }
  }

  int Compute(uint32_t w, uint64_t clock, int now, const std::array<int, kBlocks>& weights,
              std::array<int, kBlocks>& gradients) {
    const std::string who = NameOf(WorkerId(w));
    for (uint32_t block = 0; block < kBlocks; ++block) {
      if (At(weights[block]) > At(now)) {
        TraceEvent wait = Span(TraceKind::kWait, block, clock, At(now), At(weights[block]) + kMs);
        Record(WorkerId(w), 0, wait);
        now = Add(weights[block], kMs, PathWork::kDecode, who, block);
      }
      const int done = Add(now, Draw(1, 20), PathWork::kForward, who, block);
      Record(WorkerId(w), 0, Span(TraceKind::kForward, block, clock, At(now), At(done)));
      now = done;
    }
    for (uint32_t block = kBlocks; block-- > 0;) {
      const int done = Add(now, Draw(1, 40), PathWork::kBackward, who, block);
      TraceEvent span = Span(TraceKind::kBackward, block, clock, At(now), At(done));
      span.virtual_worker = w;
      Record(WorkerId(w), 0, span);
      now = gradients[block] = done;
    }
    return now;
  }

  void Exchange(uint64_t clock, uint32_t block,
                const std::array<std::array<int, kBlocks>, kWorkers>& gradients,
                std::array<std::array<int, kBlocks>, kWorkers>& arrived) {
    const uint32_t server = ServerOf(block);
    const std::string lane = NameOf(server);
    int last = -1;
    std::vector<int64_t> sums;
    for (uint32_t w = 0; w < kWorkers; ++w) {
      const std::string who = NameOf(WorkerId(w));
      int sent = gradients[w][block];
      const int64_t queued = At(sent);
      sent = Add(sent, Draw(2, 4), PathWork::kQueue, who, block);
      const int came = Add(sent, ApartFrom(sums, At(sent)), PathWork::kPush,
                           absl::StrCat("link ", who, " to ", lane), block);
      sums.push_back(At(came));
      const int summed = Add(came, kMs, PathWork::kSum, lane, block);
      TraceEvent event = Span(TraceKind::kQueue, block, clock, queued, At(sent));
      event.virtual_worker = w;
      Record(WorkerId(w), 1, event);
      event.kind = TraceKind::kPush;
      event.begin_ns = At(sent);
      event.end_ns = At(summed) + 10'000 * kMs;  // no push waits for its credit
      Record(WorkerId(w), 1, event);
      event.kind = TraceKind::kSum;
      event.peer = WorkerId(w);
      event.begin_ns = At(came);
      event.end_ns = At(summed);
      Record(server, block, event);
      last = last < 0 ? summed : Later(summed, last);
    }
    const int made = Add(last, Draw(2, 5), PathWork::kOptimizer, lane, block);
    Record(server, block, Span(TraceKind::kOptimizer, block, clock, At(last), At(made)));
    for (uint32_t w = 0; w < kWorkers; ++w) Answer(clock, block, w, gradients[w][0], made, arrived);
  }

  // Draws a time to the lane such that no two sums coincide.
  int64_t ApartFrom(const std::vector<int64_t>& others, int64_t sent) {
    for (;;) {
      const int64_t time = Draw(3, 60);
      const bool apart = std::all_of(others.begin(), others.end(), [&](int64_t other) {
        return std::abs(sent + time - other) > 2 * kMs;
      });
      if (apart) return time;
    }
  }

  void Answer(uint64_t clock, uint32_t block, uint32_t w, int asked, int made,
              std::array<std::array<int, kBlocks>, kWorkers>& arrived) {
    const std::string lane = NameOf(ServerOf(block));
    const std::string who = NameOf(WorkerId(w));
    TraceEvent event = Span(TraceKind::kServe, block, clock, 0, 0);
    const int held = Add(made, kMs, PathWork::kHold, lane, block);
    const int served = Add(held, kMs, PathWork::kServe, lane, block);
    event.peer = WorkerId(w);
    event.begin_ns = At(held);
    event.end_ns = At(served);
    Record(ServerOf(block), block, event);
    arrived[w][block] =
        Add(served, Draw(2, 30), PathWork::kPull, absl::StrCat("link ", lane, " to ", who), block);
    event.kind = TraceKind::kPull;
    event.peer = 1000 * (block + 1) + w;  // each has a lane of its own
    event.begin_ns = std::min(At(asked), At(made)) - kMs;
    event.end_ns = At(arrived[w][block]);
    Record(WorkerId(w), 1, event);
  }

  void Plant(int last) {
    std::vector<Link> links;
    const int64_t end = At(last);
    const int64_t begin = ends_.empty() ? 0 : ends_.back();
    for (int moment = last; moment >= 0 && At(moment) > begin;
         moment = moments_[static_cast<size_t>(moment)].before) {
      links.push_back(moments_[static_cast<size_t>(moment)].link);
    }
    std::reverse(links.begin(), links.end());
    planted_.push_back(links);
    ends_.push_back(end);
  }

  std::mt19937 random_;
  std::vector<Moment> moments_;
};

std::vector<Link> LinksOf(const StepPath& path, int64_t min_part_ns = 0) {
  std::vector<Link> links;
  for (const PathPart& part : path.parts) {
    if (part.end_ns - part.begin_ns > min_part_ns)
      links.emplace_back(part.what, part.who, part.block);
  }
  return links;
}

void ExpectWhole(const StepPath& path) {
  ASSERT_FALSE(path.parts.empty());
  EXPECT_EQ(path.parts.front().begin_ns, path.begin_ns);
  EXPECT_EQ(path.parts.back().end_ns, path.end_ns);
  for (size_t i = 0; i < path.parts.size(); ++i) {
    EXPECT_LT(path.parts[i].begin_ns, path.parts[i].end_ns);
    if (i > 0) {
      EXPECT_EQ(path.parts[i].begin_ns, path.parts[i - 1].end_ns);
    }
  }
}

class CriticalPath : public testing::TestWithParam<uint32_t> {};

TEST_P(CriticalPath, IsTheOneThatWasPlanted) {
  const PlayedJob job(GetParam());
  const std::vector<StepPath> paths = CriticalPathsOf(job.trace_);
  ASSERT_EQ(paths.size(), kSteps - 1) << "of the range";
  for (const StepPath& path : paths) {
    SCOPED_TRACE(absl::StrCat("step ", path.clock, " of seed ", GetParam()));
    ExpectWhole(path);
    EXPECT_EQ(path.end_ns, job.ends_[path.clock]);
    EXPECT_EQ(path.begin_ns, job.ends_[path.clock - 1]);
    EXPECT_EQ(LinksOf(path), job.planted_[path.clock]);
  }
}

TEST_P(CriticalPath, StandsClocksThatAreWrongWithinTheirBounds) {
  PlayedJob job(GetParam());
  std::mt19937 random(GetParam());
  constexpr int64_t kBoundNs = kMs / 10;
  for (TracedNode& node : job.trace_.nodes) {
    node.clock_error_ns = kBoundNs;
    const int64_t wrong_ns = std::uniform_int_distribution<int64_t>(-kBoundNs, kBoundNs)(random);
    for (TracedTrack& track : node.tracks) {
      for (TraceEvent& event : track.events) {
        event.begin_ns += wrong_ns;
        event.end_ns += wrong_ns;
      }
    }
  }
  for (const StepPath& path : CriticalPathsOf(job.trace_)) {
    SCOPED_TRACE(absl::StrCat("step ", path.clock, " of seed ", GetParam()));
    ExpectWhole(path);
    // The beginning is a moment of another node: instantaneous parts are omitted.
    std::vector<Link> planted = job.planted_[path.clock];
    std::vector<Link> found = LinksOf(path, 2 * kBoundNs);
    if (found.size() + 1 == planted.size()) planted.erase(planted.begin());
    EXPECT_EQ(found, planted);
  }
}

TEST_P(CriticalPath, ExplainsWhatIsMissingAsUnexplained) {
  PlayedJob job(GetParam());
  std::mt19937 random(GetParam());
  for (TracedNode& node : job.trace_.nodes) {
    for (TracedTrack& track : node.tracks) {
      std::erase_if(track.events, [&](const TraceEvent& event) {
        return event.kind != TraceKind::kStep && random() % 5 == 0;
      });
    }
  }
  bool unexplained = false;
  const std::vector<StepPath> paths = CriticalPathsOf(job.trace_);
  ASSERT_EQ(paths.size(), kSteps - 1);
  for (const StepPath& path : paths) {
    ExpectWhole(path);
    for (const PathPart& part : path.parts) unexplained |= part.what == PathWork::kUnexplained;
  }
  EXPECT_TRUE(unexplained) << "a fifth of everything is missing";
}

// The chain ends and is complete for any input.
TEST_P(CriticalPath, EndsWithSpansOfAnyTimes) {
  PlayedJob job(GetParam());
  std::mt19937 random(GetParam());
  for (TracedNode& node : job.trace_.nodes) {
    node.clock_error_ns = random() % (100 * kMs);
    for (TracedTrack& track : node.tracks) {
      for (TraceEvent& event : track.events) {
        if (event.kind == TraceKind::kStep) continue;
        event.begin_ns += static_cast<int64_t>(random() % (40 * kMs)) - 20 * kMs;
        event.end_ns = event.begin_ns + static_cast<int64_t>(random() % (40 * kMs));
      }
    }
  }
  for (const StepPath& path : CriticalPathsOf(job.trace_)) ExpectWhole(path);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CriticalPath, testing::Range(1u, 41u));

// ---- cases that a played job does not have ----

TraceEvent Span(TraceKind kind, uint64_t clock, int64_t begin_ms, int64_t end_ms,
                uint32_t segment = 0, uint32_t peer = 0) {
  return {.kind = kind,
          .first_segment = segment,
          .segment_count = 1,
          .peer = peer,
          .clock = clock,
          .begin_ns = begin_ms * kMs,
          .end_ns = end_ms * kMs};
}

JobTrace TraceOf(std::vector<TraceEvent> compute, std::vector<TraceEvent> exchange,
                 std::vector<TraceEvent> lane) {
  JobTrace trace;
  trace.range = {1, 2};
  trace.block_names = {"b"};
  trace.nodes = {
      {.node_id = 1,
       .kind = SERVER,
       .name = "server-0",
       .tracks = {{"lane 0", 0, std::move(lane)}}},
      {.node_id = 2,
       .kind = WORKER,
       .name = "worker-0",
       .tracks = {{"compute", 0, std::move(compute)}, {"exchange", 0, std::move(exchange)}}}};
  return trace;
}

// The second partition leaves when the first one's acknowledgement returned its credit: the time
// belongs to the link, not to the queue.
TEST(CriticalPathOfCredit, GoesOnWithThePushWhoseAnswerBroughtIt) {
  const JobTrace trace = TraceOf(
      {Span(TraceKind::kStep, 0, 0, 10), Span(TraceKind::kBackward, 1, 10, 20),
       Span(TraceKind::kWait, 1, 20, 100), Span(TraceKind::kStep, 1, 10, 100)},
      {Span(TraceKind::kQueue, 0, 20, 20, 0), Span(TraceKind::kPush, 0, 20, 50, 0, 256),
       Span(TraceKind::kQueue, 0, 20, 51, 1), Span(TraceKind::kPush, 0, 51, 85, 1, 256),
       Span(TraceKind::kPull, 0, 20, 99, 1, 256)},
      {Span(TraceKind::kSum, 0, 45, 46, 0, 2), Span(TraceKind::kSum, 0, 80, 81, 1, 2),
       Span(TraceKind::kOptimizer, 0, 81, 84, 1), Span(TraceKind::kServe, 0, 84, 85, 1, 2)});
  const std::vector<StepPath> paths = CriticalPathsOf(trace);
  ASSERT_EQ(paths.size(), 1u);
  const std::string up = "link worker-0 to server-0", down = "link server-0 to worker-0";
  EXPECT_THAT(
      LinksOf(paths[0]),
      ElementsAre(Link(PathWork::kBackward, "worker-0", "b"), Link(PathWork::kPush, up, "b"),
                  Link(PathWork::kSum, "server-0", "b"), Link(PathWork::kAnswer, down, "b"),
                  Link(PathWork::kQueue, "worker-0", "b"), Link(PathWork::kPush, up, "b"),
                  Link(PathWork::kSum, "server-0", "b"),
                  Link(PathWork::kOptimizer, "server-0", "b"),
                  Link(PathWork::kServe, "server-0", "b"), Link(PathWork::kPull, down, "b"),
                  Link(PathWork::kDecode, "worker-0", "b")));
}

// The lane was doing other work when the push arrived.
TEST(CriticalPathOfALane, HasTheWorkThatAPushWasBehind) {
  const JobTrace trace =
      TraceOf({Span(TraceKind::kStep, 0, 0, 10), Span(TraceKind::kBackward, 1, 10, 20),
               Span(TraceKind::kWait, 1, 20, 100), Span(TraceKind::kStep, 1, 10, 100)},
              {Span(TraceKind::kQueue, 0, 20, 20), Span(TraceKind::kPush, 0, 20, 85, 0, 256),
               Span(TraceKind::kPull, 0, 20, 99, 0, 256)},
              {Span(TraceKind::kOptimizer, 0, 30, 60, 7), Span(TraceKind::kSum, 0, 60, 70, 0, 2),
               Span(TraceKind::kOptimizer, 0, 70, 80), Span(TraceKind::kServe, 0, 80, 81, 0, 2)});
  const std::vector<StepPath> paths = CriticalPathsOf(trace);
  ASSERT_EQ(paths.size(), 1u);
  ASSERT_THAT(paths[0].parts, Not(IsEmpty()));
  EXPECT_EQ(paths[0].parts[1].what, PathWork::kPush);
  EXPECT_EQ(paths[0].parts[1].end_ns, 30 * kMs);
  EXPECT_EQ(paths[0].parts[2].what, PathWork::kOptimizer);
}

TEST(CriticalPathOfALane, IsNoneOfACauseBeyondTheBoundsOfClocks) {
  JobTrace trace = TraceOf({Span(TraceKind::kStep, 0, 0, 10), Span(TraceKind::kBackward, 1, 10, 20),
                            Span(TraceKind::kWait, 1, 20, 100), Span(TraceKind::kStep, 1, 10, 100)},
                           {Span(TraceKind::kPull, 0, 20, 90, 0, 256)},
                           {Span(TraceKind::kServe, 0, 94, 95, 0, 2)});
  trace.nodes[0].clock_error_ns = 4 * kMs;
  EXPECT_EQ(CriticalPathsOf(trace)[0].parts[1].what, PathWork::kUnexplained);
  trace.nodes[1].clock_error_ns = 1 * kMs;
  EXPECT_EQ(CriticalPathsOf(trace)[0].parts[1].what, PathWork::kAsk);
}

TEST(CriticalPathOfNothing, IsNone) {
  EXPECT_THAT(CriticalPathsOf(JobTrace()), IsEmpty());
  EXPECT_THAT(CriticalPathsOf(TraceOf({Span(TraceKind::kForward, 1, 0, 10)}, {}, {})), IsEmpty());
}

}  // namespace
}  // namespace tug
