// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_LIVE_PAGE_H_
#define TUG_COORDINATOR_OBSERVE_LIVE_PAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/net/http_server.h"
#include "base/time_source.h"
#include "coordinator/observe/run_history.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"

namespace tug {

// The live page of a job (live_page.html, built in). It serves 127.0.0.1 only, and no other site's
// page in a browser: requests need a Host that names this host, and the Content-Security-Policy
// lets the page load nothing from elsewhere. Read-only. A user with a login on this host can read
// the page of a job without keys; with keys, the URL has a secret part that only holders of the
// keys can compute. Thread-safe.
//   /              the page
//   /status.json   see watch_json.h
//   /history.json  see watch_json.h; ?since=SEQ: only what is newer
class LivePage {
 public:
  struct Options {
    uint16_t port = 0;                    // 0: any free one
    JobKeys keys = {};                    // kind NONE: no secret in the URL
    std::function<StatusReply()> status;  // called from any thread
    const RunHistory* history = nullptr;  // outlives the page
  };
  // Errors: UNAVAILABLE (the port is in use).
  static absl::StatusOr<std::unique_ptr<LivePage>> Start(Options options);

  // "http://127.0.0.1:40123/"; with keys "http://127.0.0.1:40123/SECRET/". Unchanged as long as the
  // keys and the port are.
  std::string url() const;
  uint16_t port() const { return server_->port(); }

  // Call when the job has ended, before the process does: gives a recent viewer up to `patience` to
  // fetch the final status.
  void AwaitViewers(absl::Duration patience);

 private:
  explicit LivePage(Options options);

  HttpReply Status();

  const Options options_;
  const std::string secret_;
  const RealTime time_;
  absl::Mutex mutex_;
  absl::Time asked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool end_seen_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<HttpServer> server_;  // last: its threads use the members above
};

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_LIVE_PAGE_H_
