// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/segment_holders.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/placement/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<uint32_t>;

SegmentHolders Begun(const Ids& servers, uint32_t replicas, uint32_t segments = 12) {
  SegmentHolders holders({.segment_bytes = std::vector<uint64_t>(segments, 10),
                          .replicas = replicas,
                          .lanes_per_server = 1});
  holders.Begin(servers);
  holders.SetPlacement(1);
  return holders;
}

// Whether the plan is reached and all copies are in sync.
bool Settled(SegmentHolders& holders) {
  const bool in_sync = std::ranges::all_of(holders.Servers(), [&holders](uint32_t server) {
    return holders.CountOf(server).missing == 0;
  });
  return in_sync && !holders.changed() && !holders.NextStep();
}

void ReportAll(SegmentHolders& holders, uint32_t placement) {
  for (const uint32_t server : holders.Servers()) holders.AddReport(server, placement);
}

TEST(SegmentHolders, BeginsWithThePlacementByBytesAndNoCopies) {
  const std::vector<uint64_t> bytes{100, 50, 60, 40, 10};
  SegmentHolders holders({.segment_bytes = bytes, .replicas = 1, .lanes_per_server = 2});
  holders.Begin(Ids{4, 7});
  EXPECT_THAT(holders.Servers(), ElementsAre(4, 7));
  EXPECT_THAT(holders.Lanes(), ElementsAre(LaneId{4, 0}, LaneId{4, 1}, LaneId{7, 0}, LaneId{7, 1}));
  EXPECT_EQ(holders.Owners(), PlaceSegments(bytes, 4));
  EXPECT_THAT(holders.Copies(), IsEmpty());
  EXPECT_TRUE(holders.changed());
  holders.SetPlacement(1);
  EXPECT_FALSE(holders.changed());
  EXPECT_TRUE(Settled(holders));
  EXPECT_FALSE(holders.NextStep());
  EXPECT_EQ(holders.AtRisk(), 0u);
}

TEST(SegmentHolders, CopiesAreThereFromTheBeginningButCountOnceTheyAreInSync) {
  SegmentHolders holders = Begun({1, 2, 3}, 2);
  ASSERT_EQ(holders.Copies().size(), 1u);
  EXPECT_EQ(holders.AtRisk(), 12u);
  EXPECT_EQ(holders.CountOf(1).owned, 4u);
  EXPECT_EQ(holders.CountOf(1).copies, 4u);
  EXPECT_EQ(holders.CountOf(1).missing, 4u);
  holders.AddReport(1, 1);
  EXPECT_EQ(holders.AtRisk(), 8u) << "of those that server 1 owns";
  ReportAll(holders, 1);
  EXPECT_EQ(holders.AtRisk(), 0u);
  EXPECT_TRUE(Settled(holders));
}

TEST(SegmentHolders, CopiesOfALostServerTakeOver) {
  SegmentHolders holders = Begun({1, 2, 3}, 2);
  ReportAll(holders, 1);
  const auto removal = holders.RemoveServer(2);
  EXPECT_EQ(removal.owned, 4u);
  EXPECT_EQ(removal.orphans, 0u);
  EXPECT_FALSE(removal.successors.empty());
  EXPECT_TRUE(holders.changed());
  EXPECT_THAT(holders.Servers(), ElementsAre(1, 3));
  holders.NextStep();
  holders.SetPlacement(2);
  EXPECT_EQ(holders.CountOf(1).owned + holders.CountOf(3).owned, 12u);
  EXPECT_EQ(holders.CountOf(1).copies + holders.CountOf(3).copies, 12u);
  ReportAll(holders, 2);
  EXPECT_EQ(holders.AtRisk(), 0u);
}

TEST(SegmentHolders, ACopyThatIsNotInSyncIsNoOwner) {
  SegmentHolders holders = Begun({1, 2}, 2);
  holders.AddReport(1, 1);
  const std::vector<uint32_t> owners = holders.Owners();
  EXPECT_EQ(holders.RemoveServer(2).orphans, 6u);
  EXPECT_EQ(holders.Owners(), owners) << "nothing has changed";
  EXPECT_EQ(holders.RemoveServer(1).orphans, 0u);
}

TEST(SegmentHolders, AServerThatKeepsItsSegmentsKeepsItsCopiesThroughAChange) {
  SegmentHolders holders = Begun({1, 2, 3, 4}, 2);
  ReportAll(holders, 1);
  ASSERT_EQ(holders.RemoveServer(4).orphans, 0u);
  holders.NextStep();
  holders.SetPlacement(2);
  const uint32_t at_risk = holders.AtRisk();
  EXPECT_GT(at_risk, 0u);
  EXPECT_LT(at_risk, 12u);
}

TEST(SegmentHolders, WithoutCopiesTheLossOfAServerIsThatOfItsSegments) {
  SegmentHolders holders = Begun({1, 2}, 1);
  EXPECT_EQ(holders.RemoveServer(1).orphans, 6u);
  EXPECT_THAT(holders.Servers(), ElementsAre(1, 2));
}

TEST(SegmentHolders, AServerThatJoinsIsFilledBeforeItOwnsAnything) {
  SegmentHolders holders = Begun({1, 2}, 1);
  holders.SetServers(Ids{1, 2, 5});
  EXPECT_TRUE(holders.NextStep());
  holders.SetPlacement(2);
  EXPECT_EQ(holders.CountOf(5).owned, 0u);
  EXPECT_EQ(holders.CountOf(5).copies, 4u);
  EXPECT_EQ(holders.CountOf(5).missing, 4u);
  EXPECT_FALSE(holders.NextStep()) << "not before they are in sync";
  ReportAll(holders, 2);
  EXPECT_TRUE(holders.NextStep());
  holders.SetPlacement(3);
  EXPECT_EQ(holders.CountOf(5).owned, 4u);
  EXPECT_THAT(holders.Copies(), IsEmpty());
  EXPECT_TRUE(Settled(holders));
  EXPECT_FALSE(holders.NextStep());
}

TEST(SegmentHolders, AServerThatHandsOverHoldsNothingInTheEnd) {
  SegmentHolders holders = Begun({1, 2, 3}, 2);
  ReportAll(holders, 1);
  holders.SetServers(Ids{1, 3});
  uint32_t number = 1;
  while (holders.NextStep()) {
    holders.SetPlacement(++number);
    ReportAll(holders, number);
  }
  EXPECT_THAT(holders.Servers(), ElementsAre(1, 3));
  EXPECT_TRUE(Settled(holders));
  EXPECT_LE(number, 3u);
}

TEST(SegmentHolders, LossOfLeavingServerOrphansOnlyUnreplicatedSegments) {
  SegmentHolders holders = Begun({1, 2}, 1);
  holders.SetServers(Ids{1});
  ASSERT_TRUE(holders.NextStep());
  holders.SetPlacement(2);
  EXPECT_EQ(holders.RemoveServer(2).orphans, 6u);
  ReportAll(holders, 2);
  EXPECT_EQ(holders.RemoveServer(2).orphans, 0u);
  EXPECT_THAT(holders.Servers(), ElementsAre(1));
}

TEST(SegmentHolders, TakesNoReportOfAPlacementThatIsStillToCome) {
  SegmentHolders holders = Begun({1, 2}, 2);
  holders.AddReport(1, 2);
  holders.AddReport(2, 0);
  EXPECT_EQ(holders.AtRisk(), 12u);
}

TEST(SegmentHolders, AServerWithNothingToHoldIsOfThePlacement) {
  SegmentHolders holders = Begun({1}, 1, /*segments=*/1);
  holders.SetServers(Ids{1, 2});
  EXPECT_TRUE(holders.changed());
  EXPECT_FALSE(holders.NextStep());
  holders.SetPlacement(2);
  EXPECT_THAT(holders.Servers(), ElementsAre(1, 2));
  EXPECT_EQ(holders.RemoveServer(2).orphans, 0u);
  EXPECT_TRUE(holders.changed());
}

// Servers join, are lost and hand over at random, while segments are updated and copies are filled.
// A model of the lanes runs next to the table: which lane has which version of a segment, and which
// copies follow their owner (server/replication/replication.h). The owner of a segment must have
// all its committed updates.
class RandomServers {
 public:
  explicit RandomServers(uint64_t seed) : state_(seed * 2 + 1) {}

  // Returns whether all servers that had a segment were lost.
  bool Run() {
    const uint32_t replicas = 1 + Random(2);
    bytes_.resize(1 + Random(20));
    for (uint64_t& each : bytes_) each = 1 + Random(50);
    lanes_per_server_ = 1 + Random(2);
    holders_.emplace(SegmentHolders::Options{
        .segment_bytes = bytes_, .replicas = replicas, .lanes_per_server = lanes_per_server_});
    const uint32_t first = 1 + Random(4);
    for (uint32_t i = 0; i < first; ++i) staying_.insert(next_server_++);
    holders_->Begin(Staying());
    segments_.resize(bytes_.size());
    ReadTable();
    for (Segment& segment : segments_) {  // all start with the same state
      segment.versions[segment.owner] = 0;
      for (const LaneId& copy : segment.copies) segment.versions[copy] = 0;
    }
    Number();
    for (int i = 0; i < 150; ++i) {
      Event();
      if (lost_all_) return true;
      if (::testing::Test::HasFailure()) return false;
    }
    // Without further events it settles.
    for (int steps = 0;; ++steps) {
      FillAll();
      for (const uint32_t server : holders_->Servers()) Report(server);
      if (!holders_->NextStep()) break;
      Number();
      EXPECT_LE(steps, 3);
    }
    EXPECT_TRUE(Settled(*holders_));
    EXPECT_EQ(holders_->AtRisk(), staying_.size() >= replicas ? 0u : bytes_.size());
    EXPECT_EQ(holders_->Servers(), Staying());
    ExpectBalance();
    return false;
  }

 private:
  struct Segment {
    LaneId owner;
    std::set<LaneId> copies;
    std::map<LaneId, uint64_t> versions;  // by lane that has any
    std::set<LaneId> following;
    uint64_t committed = 0;
  };

  uint32_t Random(uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state_ >> 33) % below);
  }
  uint32_t Pick(const Ids& ids) { return ids[Random(static_cast<uint32_t>(ids.size()))]; }
  Ids Staying() const { return {staying_.begin(), staying_.end()}; }

  void Event() {
    const Ids servers = holders_->Servers();
    switch (Random(20)) {
      case 0:
        if (staying_.size() < 6) staying_.insert(next_server_++);
        holders_->SetServers(Staying());
        break;
      case 1:
        if (staying_.size() > 1) staying_.erase(Pick(Staying()));
        holders_->SetServers(Staying());
        break;
      case 2:
        if (Random(2) == 0) Lose(Pick(servers));
        break;
      case 3:
      case 4:
      case 5:
        Report(Pick(servers));
        break;
      case 6:
        FillAll();
        break;
      case 7:
      case 8:
        Fill(segments_[Random(static_cast<uint32_t>(segments_.size()))]);
        break;
      default:
        Update(segments_[Random(static_cast<uint32_t>(segments_.size()))]);
    }
    if (lost_all_) return;
    if (Random(4) == 0) holders_->NextStep();
    if (holders_->changed()) Number();
  }

  // ---- lanes ----

  void ReadTable() {
    const std::vector<LaneId> lanes = holders_->Lanes();
    EXPECT_TRUE(std::is_sorted(lanes.begin(), lanes.end()));
    const Ids owners = holders_->Owners();
    const auto copies = holders_->Copies();
    ASSERT_EQ(owners.size(), segments_.size());
    for (size_t id = 0; id < owners.size(); ++id) {
      segments_[id].owner = lanes.at(owners[id]);
      segments_[id].copies.clear();
      for (const auto& entry : copies) {
        if (entry[id] == 0) continue;
        const LaneId& copy = lanes.at(entry[id] - 1);
        EXPECT_NE(copy, segments_[id].owner);
        EXPECT_TRUE(segments_[id].copies.insert(copy).second) << "twice";
      }
    }
  }

  // A new placement: updates in flight are dropped, but some copies have them already.
  void Number() {
    for (Segment& segment : segments_) Half(segment);
    number_ += 1 + Random(2);
    holders_->SetPlacement(number_);
    ReadTable();
    for (Segment& segment : segments_) {
      ASSERT_TRUE(segment.versions.contains(segment.owner)) << "the owner has nothing";
      ASSERT_GE(segment.versions[segment.owner], segment.committed) << "an update is lost";
      segment.committed = segment.versions[segment.owner];
      std::erase_if(segment.versions, [&](const auto& entry) {
        return entry.first != segment.owner && !segment.copies.contains(entry.first);
      });
      segment.following.clear();
      for (const LaneId& copy : segment.copies) {
        const auto found = segment.versions.find(copy);
        if (found != segment.versions.end() && found->second == segment.committed) {
          segment.following.insert(copy);
        }
      }
    }
  }

  void Half(Segment& segment) {
    for (const LaneId& copy : segment.following) segment.versions[copy] += Random(2);
  }

  // No update while a copy is ahead.
  void Update(Segment& segment) {
    for (const auto& [lane, version] : segment.versions) {
      if (version > segment.committed) return;
    }
    ++segment.versions[segment.owner];
    for (const LaneId& copy : segment.following) ++segment.versions[copy];
    segment.committed = segment.versions[segment.owner];
  }

  void Fill(Segment& segment) {
    for (const LaneId& copy : segment.copies) {
      segment.versions[copy] = segment.committed;
      segment.following.insert(copy);
    }
  }
  void FillAll() {
    for (Segment& segment : segments_) Fill(segment);
  }

  void Report(uint32_t server) {
    const bool all = std::all_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
      return segment.owner.server != server || segment.following == segment.copies;
    });
    if (all) reports_[server] = number_;
    holders_->AddReport(server, reports_[server]);
  }

  void Lose(uint32_t server) {
    // The coordinator rolls back, or cancels the leaving of others.
    if (staying_.contains(server) && staying_.size() == 1) return;
    const auto before = segments_;
    const auto removal = holders_->RemoveServer(server);
    if (removal.orphans > 0) {
      lost_all_ = true;
      ReadTable();
      for (size_t id = 0; id < before.size(); ++id) {
        EXPECT_EQ(before[id].owner, segments_[id].owner) << "nothing has changed";
      }
      return;
    }
    staying_.erase(server);
    const std::vector<LaneId> lanes = holders_->Lanes();
    const Ids owners = holders_->Owners();
    for (size_t id = 0; id < before.size(); ++id) {
      EXPECT_NE(lanes[owners[id]].server, server);
      EXPECT_TRUE(before[id].owner.server == server || before[id].owner == lanes[owners[id]]);
    }
  }

  void ExpectBalance() {
    std::map<LaneId, uint64_t> owned;
    for (const LaneId& lane : holders_->Lanes()) owned[lane] = 0;
    for (size_t id = 0; id < bytes_.size(); ++id) {
      owned[segments_[id].owner] += bytes_[id];
      std::set<uint32_t> servers{segments_[id].owner.server};
      for (const LaneId& copy : segments_[id].copies) {
        EXPECT_TRUE(servers.insert(copy.server).second) << "two holders on a server";
      }
    }
    uint64_t least = ~0ull, most = 0;
    for (const auto& [lane, sum] : owned) {
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
    EXPECT_LE(most - least, *std::max_element(bytes_.begin(), bytes_.end()));
  }

  uint64_t state_;
  std::vector<uint64_t> bytes_;
  uint32_t lanes_per_server_ = 1;
  std::optional<SegmentHolders> holders_;
  std::vector<Segment> segments_;
  std::set<uint32_t> staying_;
  std::map<uint32_t, uint32_t> reports_;
  uint32_t next_server_ = 1;
  uint32_t number_ = 0;
  bool lost_all_ = false;
};

TEST(SegmentHolders, EndsCompleteAndBalancedAfterRandomEvents) {
  int whole = 0;
  constexpr int kRuns = 2000;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(seed);
    whole += RandomServers(seed).Run() ? 0 : 1;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(whole, kRuns / 10);
  EXPECT_LT(whole, kRuns);
}

}  // namespace
}  // namespace tug
