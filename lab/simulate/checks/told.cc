// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/checks/told.h"

#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/observe/run_reporter.h"
#include "proto/control.pb.h"

namespace tug {
namespace {

// A text may state that a checkpoint still being written could become the newest.
constexpr char kLater[] = "a later checkpoint";

std::optional<uint64_t> NumberAfter(std::string_view text, std::string_view phrase) {
  const size_t at = text.find(phrase);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + phrase.size());
  size_t digits = 0;
  while (digits < rest.size() && absl::ascii_isdigit(static_cast<unsigned char>(rest[digits]))) {
    ++digits;
  }
  uint64_t number = 0;
  const std::string word(rest.substr(0, digits));
  return absl::SimpleAtoi(word, &number) ? std::optional(number) : std::nullopt;
}

}  // namespace

Told::Told(uint64_t start, uint64_t job_steps, std::function<void(const std::string&)> violation)
    : start_(start), job_steps_(job_steps), violation_(std::move(violation)), saved_(start) {}

void Told::CheckNumber(const std::string& text, const std::string& phrase) {
  const std::optional<uint64_t> number = NumberAfter(text, phrase);
  if (!number.has_value() || *number == saved_) return;
  if (*number < saved_ && absl::StrContains(text, kLater)) return;
  violation_(
      absl::StrCat("the user is told \"", text, "\", but the last checkpoint is of step ", saved_));
}

void Told::OnNotice(const std::string& text) {
  CheckNumber(text, "the job rolls back to step ");
  if (absl::StrContains(text, "the checkpoint has all steps") && !stopped_ && saved_ < job_steps_) {
    violation_(absl::StrCat("the user is told \"", text, "\", but the last checkpoint is of step ",
                            saved_));
  }
}

void Told::OnTimeline(uint64_t version) {
  CheckNumber(absl::StrCat("the job continues from step ", version), "continues from step ");
}

void Told::OnStopAnswer(const std::string& text) {
  stopped_ = true;
  CheckNumber(text, "with the checkpoint of step ");
  const bool nothing = absl::StrContains(text, "without a new checkpoint");
  promised_ = nothing ? start_ : NumberAfter(text, "with the checkpoint of step ");
  maybe_later_ = absl::StrContains(text, kLater);
}

void Told::OnDone(const StatusReply& status) {
  const std::string reason = EndReason(status, job_steps_);
  if (status.step() != saved_ || status.last_checkpoint() != saved_) {
    violation_(absl::StrCat("the job reports that it ended at step ", status.step(),
                            ", with the checkpoint of step ", status.last_checkpoint(),
                            ", but its last checkpoint is of step ", saved_));
  }
  // Where every push is an update, there may be further steps that were not known to have begun.
  if ((reason == "done") != (saved_ >= job_steps_)) {
    violation_(absl::StrCat("the summary reports \"", reason,
                            "\", but the last checkpoint is of step ", saved_, " of ", job_steps_));
  }
  if (!stopped_ && saved_ < job_steps_) {
    violation_(
        absl::StrCat("the job was not stopped, but ended at step ", saved_, " of ", job_steps_));
  }
  if (promised_.has_value() && *promised_ != saved_ && !(maybe_later_ && *promised_ < saved_)) {
    violation_(absl::StrCat("the reply to the stop request promised the checkpoint of step ",
                            *promised_, ", but the job ended with that of step ", saved_));
  }
  if (status.has_best() && status.best().version() > saved_) {
    violation_(absl::StrCat("the best evaluation is of step ", status.best().version(),
                            ", but the job ended at step ", saved_));
  }
}

void Told::OnFailure(const std::string& text) {
  CheckNumber(text, "(step ");
  if (absl::StrContains(text, "no checkpoint was written yet") && saved_ > 0) {
    violation_(absl::StrCat("the user is told \"", text, "\", but the last checkpoint is of step ",
                            saved_));
  }
}

}  // namespace tug
