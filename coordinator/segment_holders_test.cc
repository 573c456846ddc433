#include "coordinator/segment_holders.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/placement.h"
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

void ReportAll(SegmentHolders& holders, uint32_t placement) {
  for (const uint32_t server : holders.Servers()) holders.AddReport(server, placement);
}

TEST(SegmentHolders, BeginsWithThePlacementByBytesAndNoCopies) {
  const std::vector<uint64_t> bytes{100, 50, 60, 40, 10};
  SegmentHolders holders({.segment_bytes = bytes, .replicas = 1, .lanes_per_server = 2});
  holders.Begin(Ids{4, 7});
  EXPECT_THAT(holders.Servers(), ElementsAre(4, 7));
  EXPECT_THAT(holders.Lanes(),
              ElementsAre(LaneId{4, 0}, LaneId{4, 1}, LaneId{7, 0}, LaneId{7, 1}));
  EXPECT_EQ(holders.Owners(), PlaceSegments(bytes, 4));
  EXPECT_THAT(holders.Copies(), IsEmpty());
  EXPECT_TRUE(holders.changed());
  holders.SetPlacement(1);
  EXPECT_FALSE(holders.changed());
  EXPECT_TRUE(holders.Settled());
  EXPECT_FALSE(holders.TakeStep());
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
  EXPECT_TRUE(holders.Settled());
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
  holders.TakeStep();
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
  holders.TakeStep();
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
  EXPECT_TRUE(holders.TakeStep());
  holders.SetPlacement(2);
  EXPECT_EQ(holders.CountOf(5).owned, 0u);
  EXPECT_EQ(holders.CountOf(5).copies, 4u);
  EXPECT_EQ(holders.CountOf(5).missing, 4u);
  EXPECT_FALSE(holders.TakeStep()) << "not before they are in sync";
  ReportAll(holders, 2);
  EXPECT_TRUE(holders.TakeStep());
  holders.SetPlacement(3);
  EXPECT_EQ(holders.CountOf(5).owned, 4u);
  EXPECT_THAT(holders.Copies(), IsEmpty());
  EXPECT_TRUE(holders.Settled());
  EXPECT_FALSE(holders.TakeStep());
}

TEST(SegmentHolders, AServerThatHandsOverHoldsNothingInTheEnd) {
  SegmentHolders holders = Begun({1, 2, 3}, 2);
  ReportAll(holders, 1);
  holders.SetServers(Ids{1, 3});
  uint32_t number = 1;
  while (holders.TakeStep()) {
    holders.SetPlacement(++number);
    ReportAll(holders, number);
  }
  EXPECT_THAT(holders.Servers(), ElementsAre(1, 3));
  EXPECT_TRUE(holders.Settled());
  EXPECT_LE(number, 3u);
}

TEST(SegmentHolders, WhoIsAboutToHandOverIsReplacedByWhatItHasHandedOver) {
  SegmentHolders holders = Begun({1, 2}, 1);
  holders.SetServers(Ids{1});
  ASSERT_TRUE(holders.TakeStep());
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
  EXPECT_FALSE(holders.TakeStep());
  holders.SetPlacement(2);
  EXPECT_THAT(holders.Servers(), ElementsAre(1, 2));
  EXPECT_EQ(holders.RemoveServer(2).orphans, 0u);
  EXPECT_TRUE(holders.changed());
}

// Servers join, are lost and hand over at random, while reports arrive at random.
class RandomServers {
 public:
  explicit RandomServers(uint64_t seed) : state_(seed * 2 + 1) {}

  void Run() {
    const uint32_t replicas = 1 + Random(2);
    std::vector<uint64_t> bytes(1 + Random(20));
    for (uint64_t& each : bytes) each = 1 + Random(50);
    holders_.emplace(SegmentHolders::Options{
        .segment_bytes = bytes, .replicas = replicas, .lanes_per_server = 1 + Random(2)});
    const uint32_t first = 1 + Random(4);
    for (uint32_t i = 0; i < first; ++i) staying_.insert(next_server_++);
    holders_->Begin(Staying());
    Number();
    for (int i = 0; i < 60 && !lost_all_; ++i) Event();
    if (lost_all_) return;
    // Left alone, it ends.
    int steps = 0;
    ReportAll(*holders_, number_);
    while (holders_->TakeStep()) {
      Number();
      ReportAll(*holders_, number_);
      ASSERT_LE(++steps, 3);
    }
    EXPECT_TRUE(holders_->Settled());
    EXPECT_EQ(holders_->AtRisk(), staying_.size() >= replicas ? 0u : bytes.size());
    EXPECT_EQ(holders_->Servers(), Staying());
    Balanced(bytes);
  }

 private:
  uint32_t Random(uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state_ >> 33) % below);
  }
  Ids Staying() const { return {staying_.begin(), staying_.end()}; }

  void Number() {
    number_ += 1 + Random(2);
    holders_->SetPlacement(number_);
    CheckTable();
  }

  void Event() {
    const Ids servers = holders_->Servers();
    switch (Random(6)) {
      case 0:
        if (staying_.size() < 6) staying_.insert(next_server_++);
        holders_->SetServers(Staying());
        break;
      case 1:
        if (staying_.size() > 1) staying_.erase(Pick(Staying()));
        holders_->SetServers(Staying());
        break;
      case 2:
        if (Random(3) == 0) Lose(Pick(servers));
        break;
      default:
        holders_->AddReport(Pick(servers), number_ - Random(2));
    }
    if (lost_all_) return;
    if (Random(2) == 0) holders_->TakeStep();
    if (holders_->changed()) Number();
  }

  uint32_t Pick(const Ids& ids) { return ids[Random(static_cast<uint32_t>(ids.size()))]; }

  void Lose(uint32_t server) {
    const std::vector<LaneId> lanes = holders_->Lanes();
    const Ids owners = holders_->Owners();
    const bool last = staying_.contains(server) && staying_.size() == 1;
    if (last) return;  // the coordinator goes back, or calls off who hands over
    const auto removal = holders_->RemoveServer(server);
    if (removal.orphans > 0) {
      lost_all_ = true;
      EXPECT_EQ(holders_->Owners(), owners);
      return;
    }
    staying_.erase(server);
    for (size_t id = 0; id < owners.size(); ++id) {
      const LaneId owner = holders_->Lanes()[holders_->Owners()[id]];
      EXPECT_NE(owner.server, server);
      EXPECT_TRUE(lanes[owners[id]].server == server || owner == lanes[owners[id]]);
    }
  }

  void CheckTable() {
    const Ids owners = holders_->Owners();
    const auto copies = holders_->Copies();
    const size_t lanes = holders_->Lanes().size();
    for (size_t id = 0; id < owners.size(); ++id) {
      std::set<uint32_t> held{owners[id]};
      for (const auto& entry : copies) {
        ASSERT_LE(entry[id], lanes);
        EXPECT_TRUE(entry[id] == 0 || held.insert(entry[id] - 1).second) << "held twice";
      }
    }
    uint32_t owned = 0;
    for (const uint32_t server : holders_->Servers()) owned += holders_->CountOf(server).owned;
    EXPECT_EQ(owned, owners.size());
  }

  void Balanced(const std::vector<uint64_t>& bytes) {
    std::map<uint32_t, uint64_t> owned;
    for (uint32_t lane = 0; lane < holders_->Lanes().size(); ++lane) owned[lane] = 0;
    const Ids owners = holders_->Owners();
    for (size_t id = 0; id < bytes.size(); ++id) owned[owners[id]] += bytes[id];
    uint64_t least = ~0ull, most = 0;
    for (const auto& [lane, sum] : owned) {
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
    EXPECT_LE(most - least, *std::max_element(bytes.begin(), bytes.end()));
  }

  uint64_t state_;
  std::optional<SegmentHolders> holders_;
  std::set<uint32_t> staying_;
  uint32_t next_server_ = 1;
  uint32_t number_ = 0;
  bool lost_all_ = false;
};

TEST(SegmentHolders, EndsWholeAndBalancedWhateverHappens) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomServers(seed).Run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tug
