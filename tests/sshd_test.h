#ifndef TUG_TESTS_SSHD_TEST_H_
#define TUG_TESTS_SSHD_TEST_H_

#include <string>
#include <vector>

#include "tests/tug_test.h"

namespace tug {

// A test with hosts that are reached by ssh: real sshd processes, at addresses of loopback or in
// network namespaces; skipped where there is no sshd. Path("ssh_config") is for `ssh -F`.
class SshdTest : public TugTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // One at all of these addresses, with one port. `in`: a command that runs another where sshd is
  // to run.
  void StartSshd(const Texts& addresses, const Texts& in = {});
  // hosts.txt: a line each.
  void WriteHosts(const Texts& addresses);

  int port_ = 0;
  std::string known_hosts_;
  std::vector<Process*> sshds_;
};

}  // namespace tug

#endif  // TUG_TESTS_SSHD_TEST_H_
