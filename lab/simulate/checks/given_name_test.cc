// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/checks/given_name.h"

#include <gtest/gtest.h>

#include "proto/control.pb.h"

namespace tug {
namespace {

// Workers 3 and 4 as worker-0 and `name`; 4 has just registered, with the wish for worker-1.
std::string Wrong(const std::string& name, const std::string& told) {
  StatusReply status;
  for (const uint32_t id : {3u, 4u}) {
    NodeStatus* node = status.add_nodes();
    node->set_node_id(id);
    node->set_kind(WORKER);
    node->set_name(id == 3 ? "worker-0" : name);
  }
  RegisterRequest request;
  request.set_kind(WORKER);
  request.set_index(1);
  RegisterReply reply;
  reply.set_node_id(4);
  reply.set_name(told);
  return WrongName(request, reply, status);
}

TEST(WrongName, WantsTheWishedName) {
  EXPECT_EQ(Wrong("worker-1", "worker-1"), "");
  EXPECT_EQ(Wrong("worker-2", "worker-2"), "node 4 is worker-2, although worker-1 was free");
}

TEST(WrongName, WantsOneNodePerName) {
  EXPECT_EQ(Wrong("worker-0", "worker-0"), "nodes 3 and 4 are both worker-0");
  EXPECT_EQ(Wrong("worker-1", "worker-0"),
            "node 4 is told to be worker-0, which the status denies");
}

}  // namespace
}  // namespace tug
