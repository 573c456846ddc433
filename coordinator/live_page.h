#ifndef TUG_COORDINATOR_LIVE_PAGE_H_
#define TUG_COORDINATOR_LIVE_PAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/http_server.h"
#include "base/time_source.h"
#include "coordinator/run_history.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"

namespace tug {

// The page that a job is watched by (live_page.html, built in): at 127.0.0.1 only, and for no other
// site's page in a browser: it asks for a Host that means this host, and its
// Content-Security-Policy lets it load nothing from anywhere. It shows, and changes nothing.
// Whoever has a login on this host can read the page of a job without keys; the address of a page
// of a job with keys has a part that only members and those they tell know. Thread-safe.
//   /              the page
//   /status.json   watch_json.h
//   /history.json  the same; ?since=SEQ: what is new since then
class LivePage {
 public:
  struct Options {
    uint16_t port = 0;                    // 0: any free one
    JobKeys keys = {};                    // of NONE: no secret is asked for
    std::function<StatusReply()> status;  // called from any thread
    const RunHistory* history = nullptr;  // outlives the page
  };
  // Errors: UNAVAILABLE (the port is in use).
  static absl::StatusOr<std::unique_ptr<LivePage>> Start(Options options);

  // "http://127.0.0.1:40123/", with keys "http://127.0.0.1:40123/SECRET/", the same as long as the
  // keys and the port are
  std::string url() const;
  uint16_t port() const { return server_->port(); }

  // The job has ended, and this process will. Whoever has looked lately is given the time to see
  // it, as long as `patience`.
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
  std::unique_ptr<HttpServer> server_;  // last: its threads use the others
};

}  // namespace tug

#endif  // TUG_COORDINATOR_LIVE_PAGE_H_
