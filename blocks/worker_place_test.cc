// SPDX-License-Identifier: Apache-2.0
#include "blocks/worker_place.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

View TwoWorkers() {
  View view;
  view.set_start_version(7);
  WorkerAssignment* first = view.add_workers();
  first->set_node_id(3);
  for (uint32_t v : {0u, 1u, 5u}) first->add_virtual_workers(v);
  WorkerAssignment* second = view.add_workers();
  second->set_node_id(4);
  for (uint32_t v : {2u, 3u}) second->add_virtual_workers(v);
  for (uint64_t clock : {9u, 6u}) second->add_start_clocks(clock);
  return view;
}

TEST(WorkerPlace, GoesOnAtTheStartVersionOrAtClocksOfItsOwn) {
  EXPECT_EQ(PlaceOf(TwoWorkers(), 3).start_clocks, (std::vector<uint64_t>{7, 7, 7}));
  EXPECT_EQ(PlaceOf(TwoWorkers(), 4).start_clocks, (std::vector<uint64_t>{9, 6}));
  EXPECT_TRUE(PlaceOf(TwoWorkers(), 5).virtual_workers.empty());
}

TEST(WorkerPlace, PullsSpeakForAContiguousRun) {
  const std::vector<uint32_t> carried = {0, 1, 5, 6, 7};
  EXPECT_EQ(FirstRun(carried), (VirtualWorkerRun{0, 2}));
  EXPECT_EQ(FirstRun(std::span(carried).subspan(1, 2)), (VirtualWorkerRun{1, 1}));
  EXPECT_EQ(FirstRun(std::span(carried).subspan(2)), (VirtualWorkerRun{5, 3}));
}

}  // namespace
}  // namespace tug
