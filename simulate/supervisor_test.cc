#include "simulate/supervisor.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

using Nodes = Supervisor::Nodes;

TEST(Supervisor, StartsThoseThatHaveLeftOnceTheJobWaits) {
  Supervisor supervisor;
  EXPECT_EQ(supervisor.ToStart(true), Nodes());
  supervisor.OnWorkerLeft();
  supervisor.OnServerLeft();
  supervisor.OnWorkerLeft();
  EXPECT_EQ(supervisor.ToStart(false), Nodes());
  EXPECT_EQ(supervisor.ToStart(true), (Nodes{.servers = 1, .workers = 2}));
  EXPECT_EQ(supervisor.ToStart(true), Nodes());
}

}  // namespace
}  // namespace tug
