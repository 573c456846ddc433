// SPDX-License-Identifier: Apache-2.0
#include "server/lane_core.h"

#include <algorithm>

#include "base/status_macros.h"
#include "blocks/view_lanes.h"
#include "server/segments/initial_weights.h"

namespace tug {
namespace {

// Messages of a reduction to process between two polls.
constexpr int kWorkBetweenPolls = 4;

}  // namespace

LaneCore::LaneCore(const Job& job, const SegmentTable& table, Sinks sinks)
    : job_(job), table_(table), sinks_(std::move(sinks)) {}

ShardSinks LaneCore::MakeShardSinks() {
  // A configured rate limits payloads in shared memory too. Weights in an offload file are copied
  // to be sent, in portions of the worker's credit.
  const bool copies =
      job_.config.comm().impair().rate_mbit() > 0 || !job_.config.placement().offload_dir().empty();
  return {.send = sinks_.send,
          .snapshot =
              [this](const SegmentSnapshot& snapshot) {
                if (writers_[snapshot.segment] == job_.lane) sinks_.snapshot(snapshot);
              },
          .notice = sinks_.notice,
          .shares_memory =
              [this, copies](PeerId peer) {
                return !copies && sinks_.shares_memory && sinks_.shares_memory(peer);
              },
          .record = sinks_.record,
          .wake = sinks_.wake};
}

absl::StatusOr<std::unique_ptr<Shard>> LaneCore::MakeShard(const View& view) {
  RETURN_IF_ERROR(sinks_.connect(view));
  ShardOptions options = ShardOptionsOf(job_.job, job_.config, view, job_.lane);
  sinks_.equip(options);
  return std::make_unique<Shard>(std::move(options), table_, MakeShardSinks());
}

void LaneCore::SetPlace(const View& view, bool first) {
  writers_ = LaneNumberOfSegment(view);
  place_ = {.timeline = view.timeline(),
            .placement = view.placement(),
            .first = first,
            .lane_index = LaneIndexOf(view, job_.lane),
            .segments = static_cast<size_t>(std::ranges::count(writers_, job_.lane))};
  sinks_.place(place_);
}

absl::Status LaneCore::Begin(const View& view, bool joins, absl::Time now) {
  KeepPeaks();
  shard_.reset();  // before the next one is allocated
  progress_ = {};
  schedule_ = 0;
  next_reduction_tick_ = absl::InfinitePast();
  SetPlace(view, /*first=*/!joins);
  ASSIGN_OR_RETURN(shard_, MakeShard(view));
  live_ = LiveSet(job_.config.cluster().virtual_workers());  // until Obey
  if (joins) {
    RETURN_IF_ERROR(shard_->InheritFrom(nullptr, now));
  } else {
    RETURN_IF_ERROR(Fill(view));
    if (view.restore_path().empty() && job_.config.checkpoint().initial()) shard_->SnapshotStart();
    if (reduces()) SetOverNetwork(view);
  }
  progress_.view = view.number();
  return absl::OkStatus();
}

absl::Status LaneCore::Fill(const View& view) {
  if (!view.restore_path().empty() || !job_.config.train().init_from().empty()) {
    return sinks_.fill(view, *shard_);
  }
  for (const uint32_t id : shard_->held()) {
    const Segment& segment = table_.segment(id);
    FillInitialWeights(view.blocks().blocks(static_cast<int>(segment.block)), segment.block,
                       job_.config.seed(), segment.begin, shard_->weights(id));
  }
  return absl::OkStatus();
}

void LaneCore::SetOverNetwork(const View& view) {
  std::vector<bool> over_network;
  for (const PeerId peer : ReducingLanes(view)) {
    over_network.push_back(peer != LanePeer(job_.lane) && !sinks_.shares_memory(peer));
  }
  shard_->reduction()->SetOverNetwork(std::move(over_network));
}

absl::Status LaneCore::Obey(const LaneOrders::Wanted& wanted, absl::Time now) {
  if (wanted.placement.has_value() && wanted.placement->placement() > place_.placement) {
    RETURN_IF_ERROR(AdoptPlacement(*wanted.placement, now));
  }
  const uint32_t view = std::max(wanted.view, wanted.fence);
  if (view != progress_.view || *wanted.live != live_) {
    live_ = *wanted.live;
    progress_.view = view;
    shard_->SetView(view, live_, now);
  }
  if (!wanted.final_clocks.empty()) {
    shard_->SetFinalClocks(wanted.final_clocks, wanted.final_version, now);
  } else if (wanted.final_version > 0) {
    shard_->SetFinalVersion(wanted.final_version);
  }
  if (wanted.schedule != schedule_) shard_->SetPullCredit(wanted.pull_credit_bytes, now);
  progress_.schedule = schedule_ = wanted.schedule;
  if (wanted.fence > 0 && progress_.clocks_of_view != wanted.fence) {
    progress_.clocks = shard_->Clocks();
    progress_.clocks_of_view = wanted.fence;
  }
  return absl::OkStatus();
}

absl::Status LaneCore::AdoptPlacement(const View& view, absl::Time now) {
  if (job_.config.sync().record() == SyncConfig::ORDER && !shard_->finished()) {
    return absl::FailedPreconditionError(
        "sync.record ORDER requires servers to keep their segments, but a server joined or left: "
        "remove sync.record");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Shard> next, MakeShard(view));
  SetPlace(view, /*first=*/false);
  RETURN_IF_ERROR(next->InheritFrom(shard_.get(), now));
  KeepPeaks();
  shard_ = std::move(next);
  progress_.view = view.number();
  schedule_ = 0;
  return absl::OkStatus();
}

void LaneCore::OnTick(absl::Time now) {
  shard_->OnTick(now);
  if (shard_->CopiesInSync()) progress_.copied_placement = place_.placement;
}

bool LaneCore::Reduce(absl::Time now) {
  LaneReduction* const reduction = shard_->reduction();
  if (reduction == nullptr) return false;
  if (now >= next_reduction_tick_) {
    reduction->OnTick(now);
    next_reduction_tick_ = now + RankGroup::kTick;
  }
  // The driver has sent everything by now, so a slow optimizer delays no message.
  bool busy = reduction->HandBackOne(now);
  for (int i = 0; i < kWorkBetweenPolls && reduction->Work(); ++i) busy = true;
  return busy || !reduction->ReadyToWait();
}

void LaneCore::KeepPeaks() {
  peak_sum_bytes_ = peak_sum_bytes();
  peak_cached_bytes_ = peak_cached_bytes();
}

uint64_t LaneCore::peak_sum_bytes() const {
  return std::max(peak_sum_bytes_, shard_ == nullptr ? 0 : shard_->peak_held_bytes());
}

uint64_t LaneCore::peak_cached_bytes() const {
  return std::max(peak_cached_bytes_, shard_ == nullptr ? 0 : shard_->peak_cached_bytes());
}

}  // namespace tug
