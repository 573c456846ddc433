// SPDX-License-Identifier: Apache-2.0
#include "server/shard/push_handler.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/sums/norm_entry.h"

namespace tug {

void PushHandler::OnNorms(const Message& message) {
  context_.Malformed(message.header, "has norms, but this job exchanges none");
}

void PushHandler::OnNormsWanted(const WireHeader& header) {
  context_.Malformed(header, "requests norms, but this job exchanges none");
}

bool PushHandler::NamesOwnPush(const WireHeader& header) const {
  return IsWorker(header.sender) && own_.HasRange(header) && header.token_count > 0 &&
         SumTree::IsNode(context_.options.virtual_workers, header.virtual_worker,
                         header.virtual_worker_count);
}

bool PushHandler::Take(Message message) {
  const WireHeader header = message.header;
  if (!push_.Take(std::move(message), context_.table)) {
    context_.Malformed(header, "is a push of the wrong size");
    return false;
  }
  const TraceSpan span(header.codec == Codec::kRuns ? context_.options.trace : nullptr,
                       context_.EventOf(TraceKind::kDecode, header));
  const bool expanded = push_.Expand(context_.table);
  if (!expanded) context_.Malformed(header, "is a push with invalid element ranges");
  return expanded;
}

void PushHandler::NoticeSkip(const SkippedUpdate& skipped) const {
  const bool global = skipped.clip == OptimizerConfig::GLOBAL;
  const std::string& block = context_.options.block_names[skipped.block];
  const char* const what = global ? "the whole update"
                           : skipped.clip == OptimizerConfig::PER_BLOCK
                               ? "the update of that block"
                               : "the update of that segment";
  const std::string where = skipped.bad_virtual_worker == NormEntry::kAllFinite
                                ? std::string("summed over all virtual workers")
                                : absl::StrCat("from virtual worker ", skipped.bad_virtual_worker);
  const std::string who =
      skipped.of_one_push ? absl::StrCat("/", skipped.bad_virtual_worker) : std::string();
  // A worker that clips makes its whole gradient not finite, so the block is not known.
  const std::string of_block =
      skipped.of_one_push && global ? std::string() : absl::StrCat("of block ", block, " ");
  context_.sinks.notice({absl::StrCat("nonfinite/", skipped.clock, "/", global ? "" : block, who),
                         absl::StrCat("step ", skipped.clock + 1, ": the gradient ", of_block,
                                      where, " is not finite; ", what,
                                      " is skipped (if this repeats, ", skipped.remedy, ")")});
}

}  // namespace tug
