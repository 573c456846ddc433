// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/live_page.h"

#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "coordinator/observe/live_page_text.h"
#include "coordinator/observe/watch_json.h"

namespace tug {
namespace {

constexpr absl::Duration kLooksStill = absl::Seconds(3);  // the page polls every second
constexpr char kJsonType[] = "application/json; charset=utf-8";

// The page. The browser runs only scripts and styles that carry this reply's nonce.
HttpReply Page() {
  std::random_device random;
  const std::string nonce =
      absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
  return {.type = "text/html; charset=utf-8",
          .body = absl::StrReplaceAll(kLivePage, {{"NONCE", nonce}}),
          .content_security_policy = absl::StrCat(
              "default-src 'none'; script-src 'nonce-", nonce, "'; style-src 'nonce-", nonce,
              "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
              "frame-ancestors 'none'")};
}

// Secret part of the page's URL. Reveals nothing about the keys. Jobs with the same keys share it;
// it gives access to their pages only.
std::string SecretOf(const JobKeys& keys) {
  if (keys.none()) return "";
  const KeyProof proof = ProofOf(keys, "live page");
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(proof.data()), 16));
}

}  // namespace

LivePage::LivePage(Options options)
    : options_(std::move(options)), secret_(SecretOf(options_.keys)) {}

absl::StatusOr<std::unique_ptr<LivePage>> LivePage::Start(Options options) {
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server,
                   HttpServer::Listen("127.0.0.1", options.port));
  std::unique_ptr<LivePage> page(new LivePage(std::move(options)));
  server->AnswerToLoopbackNamesOnly();
  server->Hide(page->secret_);
  server->Add("/", [] { return Page(); });
  server->Add("/status.json", [page = page.get()] { return page->Status(); });
  server->AddQuery("/history.json", [history = page->options_.history](const HttpQuery& query) {
    uint64_t since = 0;  // also if it is not a number
    const auto asked = query.find("since");
    if (asked != query.end() && !absl::SimpleAtoi(asked->second, &since)) since = 0;
    return HttpReply{kJsonType, HistoryJson(history->Since(since))};
  });
  page->server_ = std::move(server);
  page->server_->Start();
  return page;
}

std::string LivePage::url() const {
  return absl::StrCat("http://", server_->address(), "/", secret_, secret_.empty() ? "" : "/");
}

HttpReply LivePage::Status() {
  const StatusReply status = options_.status();
  absl::MutexLock lock(&mutex_);
  asked_ = time_.Now();
  end_seen_ |= status.phase() == DONE || status.phase() == FAILED;
  return {kJsonType, StatusJson(status)};
}

void LivePage::AwaitViewers(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  if (time_.Now() - asked_ > kLooksStill) return;
  mutex_.AwaitWithTimeout(absl::Condition(&end_seen_), patience);
}

}  // namespace tug
