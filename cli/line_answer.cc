// SPDX-License-Identifier: Apache-2.0
#include "cli/line_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/line_text.h"
#include "data/sample_batch.h"
#include "data/token_file.h"
#include "model/job_model.h"

namespace tug {
namespace {

constexpr size_t kMaxLabels = 3;

// A batch of one padded sample: the symbols `front`, then those of `text`.
absl::StatusOr<SampleBatch> OneSample(const JobConfig& config, const Tokenizer& tokenizer,
                                      std::vector<int32_t> front, const std::string& text) {
  ASSIGN_OR_RETURN(const std::string_view side, SideOfLine(text));
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer.Encode(side));
  if (tokens.empty()) {
    return absl::InvalidArgumentError("no line given: pass one with --prompt TEXT");
  }
  front.insert(front.end(), tokens.begin(), tokens.end());
  const uint32_t context = config.model().context();
  if (front.size() > context) {
    return absl::InvalidArgumentError(absl::StrCat("the line has ", front.size(),
                                                   " tokens, more than model.context = ", context,
                                                   ": pass a shorter one"));
  }
  SampleBatch batch;
  batch.Resize(config.model().family(), /*padded=*/true, context, 1);
  std::ranges::fill(batch.tokens, kPadding);
  std::ranges::copy(front, batch.tokens.begin());
  batch.lengths[0] = static_cast<int32_t>(front.size());
  std::ranges::fill(batch.decoder_tokens, kPadding);
  return batch;
}

absl::StatusOr<std::string> TargetOf(LoadedModel& loaded, const Tokenizer& tokenizer,
                                     const std::string& source) {
  const JobConfig& config = loaded.config();
  ASSIGN_OR_RETURN(SampleBatch batch, OneSample(config, tokenizer, {}, source));
  const int32_t begin = BeginSymbol(tokenizer.symbols()), end = EndSymbol(tokenizer.symbols());
  batch.decoder_tokens[0] = begin;
  std::vector<float> logits(
      std::max(config.data().resolved_symbols(), config.model().vocabulary()));
  std::vector<int32_t> target;
  for (uint32_t position = 0; position < config.model().context(); ++position) {
    loaded.model().Logits(MicroBatchOf(batch), static_cast<int>(position), logits);
    // Exclude the begin symbol, and vocabulary entries beyond the symbols of the data.
    logits[static_cast<size_t>(begin)] = -std::numeric_limits<float>::infinity();
    const auto likeliest = std::max_element(logits.begin(), logits.begin() + end + 1);
    const auto next = static_cast<int32_t>(likeliest - logits.begin());
    if (next == end) break;
    target.push_back(next);
    if (position + 1 < config.model().context()) batch.decoder_tokens[position + 1] = next;
  }
  return tokenizer.Decode(target);
}

absl::StatusOr<std::string> LabelOf(LoadedModel& loaded, const Tokenizer& tokenizer,
                                    const std::string& text) {
  const JobConfig& config = loaded.config();
  ASSIGN_OR_RETURN(const SampleBatch batch,
                   OneSample(config, tokenizer, {BeginSymbol(tokenizer.symbols())}, text));
  const auto labels = static_cast<size_t>(config.data().resolved_labels_size());
  std::vector<float> logits(std::max<size_t>(labels, config.model().classes()));
  loaded.model().Logits(MicroBatchOf(batch), 0, logits);
  double sum = 0;
  const float largest = *std::max_element(logits.begin(), logits.end());
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
  std::vector<size_t> order(labels);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::string answer;
  for (size_t i = 0; i < std::min(labels, kMaxLabels); ++i) {
    const size_t label = order[i];
    const double part = std::exp(static_cast<double>(logits[label] - largest)) / sum;
    absl::StrAppendFormat(&answer, "%s%s %.1f%%", answer.empty() ? "" : ", ",
                          config.data().resolved_labels(static_cast<int>(label)), 100 * part);
  }
  return answer;
}

}  // namespace

absl::StatusOr<std::string> AnswerTo(LoadedModel& loaded, const Tokenizer& tokenizer,
                                     const std::string& line) {
  const bool labels = loaded.config().model().family() == ModelConfig::ENCODER;
  if (labels && loaded.config().data().resolved_labels().empty()) {
    return absl::FailedPreconditionError(
        "the model was trained on random tokens: it has no labels");
  }
  return labels ? LabelOf(loaded, tokenizer, line) : TargetOf(loaded, tokenizer, line);
}

}  // namespace tug
