// SPDX-License-Identifier: Apache-2.0
#include "exchange/chosen_text.h"

#include <gtest/gtest.h>

#include "blocks/view_lanes.h"

namespace tug {
namespace {

CodecChooser::Chosen On(uint32_t server, uint32_t lane, uint32_t method, double mbit) {
  return {LaneNumber(server, lane), method, mbit * 1e6 / 8, true};
}

const std::map<uint32_t, std::string> kServers = {
    {1, "server-0"}, {2, "server-1"}, {4, "server-2"}};

TEST(DescribeChoices, NamesServersByWhatIsChosen) {
  const LinkChoices choices = {
      .pushes = {On(1, 0, 3, 92), On(1, 1, 3, 95), On(2, 0, 0, 0), On(4, 0, 3, 90)},
      .pulls = {On(1, 0, 1, 91.84)},
      .push_names = {"fp32", "int8", "one_bit", "top_k_int8"}};
  EXPECT_EQ(
      DescribeChoices(choices, kServers, true),
      "pushes to server-0, server-2 as top_k_int8 (95 Mbit/s), server-1 as fp32 (shared memory); "
      "pulls from server-0 as int8 (91.8 Mbit/s)");
  EXPECT_EQ(
      DescribeChoices(choices, kServers, false),
      "pushes to server-0, server-2 as top_k_int8, server-1 as fp32 (shared memory); pulls from "
      "server-0 as int8");
}

TEST(DescribeChoices, IsEmptyUntilAllHasSettled) {
  EXPECT_EQ(DescribeChoices({}, kServers, true), "");
  LinkChoices choices = {.pushes = {On(1, 0, 0, 92), On(2, 0, 0, 92)}, .push_names = {"fp32"}};
  choices.pushes[1].settled = false;
  EXPECT_EQ(DescribeChoices(choices, kServers, true), "");
  choices.pushes[1].settled = true;
  EXPECT_EQ(DescribeChoices(choices, kServers, true),
            "pushes to server-0, server-1 as fp32 (92 Mbit/s)");
}

}  // namespace
}  // namespace tug
