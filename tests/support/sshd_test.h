// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TESTS_SUPPORT_SSHD_TEST_H_
#define TUG_TESTS_SUPPORT_SSHD_TEST_H_

#include <string>
#include <vector>

#include "tests/support/tug_test.h"

namespace tug {

// A test with hosts reached by ssh: real sshd processes at loopback addresses or in network
// namespaces. Skipped without sshd. Path("ssh_config") is for `ssh -F`.
class SshdTest : public TugTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts one sshd that listens at all these addresses, on one port. `in`: command prefix that
  // runs it elsewhere, such as in a network namespace.
  void StartSshd(const Texts& addresses, const Texts& in = {});
  // Writes hosts.txt, one address per line.
  void WriteHosts(const Texts& addresses);

  int port_ = 0;
  std::string known_hosts_;
  std::vector<Process*> sshds_;
};

}  // namespace tug

#endif  // TUG_TESTS_SUPPORT_SSHD_TEST_H_
