// SPDX-License-Identifier: Apache-2.0
// Tests the notice that placement.host_weight_cache has no effect.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/coordinator_test_support.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using Hosts = std::vector<uint64_t>;

void Join(JobUnderTest& job, NodeKind kind, uint64_t incarnation, uint64_t host) {
  RegisterRequest request = job.Request(kind, incarnation);
  request.set_host_id(host);
  if (kind == SERVER) {
    for (const char* lane : {"a", "b"}) {
      request.add_lane_endpoints("tcp://" + std::to_string(incarnation) + lane);
    }
  }
  ASSERT_TRUE(job.coordinator().OnRegister(request, job.now()).ok());
}

// Whether a job that has begun has that notice.
bool SaysThatNothingIsKept(const Hosts& servers, const Hosts& workers, bool caches = true) {
  CoordinatorOptions options =
      JobUnderTest::Options(static_cast<uint32_t>(servers.size()),
                            static_cast<uint32_t>(workers.size()), 10, 0, /*virtual_workers=*/4);
  options.config.mutable_placement()->set_host_weight_cache(caches);
  JobUnderTest job(std::move(options));
  uint64_t incarnation = 0;
  for (const uint64_t host : servers) Join(job, SERVER, ++incarnation, host);
  for (const uint64_t host : workers) Join(job, WORKER, ++incarnation, host);
  for (uint32_t id = 1; id <= incarnation; ++id) job.Send(job.ReadyBeat(id));
  EXPECT_EQ(job.coordinator().phase(), RUNNING);
  const std::vector<NoticeAction> notices = job.Take<NoticeAction>();
  return std::any_of(notices.begin(), notices.end(), [](const NoticeAction& notice) {
    return notice.text.find("placement.host_weight_cache has no effect") != std::string::npos;
  });
}

TEST(CoordinatorWeightCache, SaysWhereNoHostHasAnythingToKeep) {
  EXPECT_TRUE(SaysThatNothingIsKept({7, 7}, {7, 7})) << "all on one host";
  EXPECT_TRUE(SaysThatNothingIsKept({7, 8}, {9, 9})) << "no server on a worker's host";
  EXPECT_TRUE(SaysThatNothingIsKept({7, 7}, {7, 9})) << "no server elsewhere";
  EXPECT_TRUE(SaysThatNothingIsKept({0, 0}, {0, 0})) << "hosts that are not known";
  EXPECT_FALSE(SaysThatNothingIsKept({7, 8}, {7, 9})) << "one worker gains";
  EXPECT_FALSE(SaysThatNothingIsKept({7, 8}, {7, 8}));
  EXPECT_FALSE(SaysThatNothingIsKept({7, 7}, {7, 7}, /*caches=*/false)) << "nobody asked";
}

}  // namespace
}  // namespace tug
