// SPDX-License-Identifier: Apache-2.0
#include "server/pulls/answer_queue.h"

#include <algorithm>
#include <utility>

namespace tug {

void AnswerQueue::Worker::Free(Ticket ticket) {
  queue.Committed(ticket);
  at_first_segment.erase(answers[ticket].first_id);
  answers[ticket].pull.payload = Lease();
  answers[ticket].sending = 0;
}

AnswerQueue::Worker* AnswerQueue::Find(PeerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : found->second.get();
}

bool AnswerQueue::Admit(PeerId worker) {
  if (workers_.contains(worker)) return true;
  if (workers_.size() >= options_.max_workers) {  // idle workers make room
    std::erase_if(workers_, [](const auto& other) { return other.second->idle(); });
    if (workers_.size() >= options_.max_workers) return false;
  }
  workers_.emplace(worker, std::make_unique<Worker>(options_));
  return true;
}

bool AnswerQueue::Add(WaitingPull pull, uint32_t first_id, uint64_t bytes) {
  std::unique_ptr<Worker>& worker = workers_[pull.header.sender];
  if (worker == nullptr) worker = std::make_unique<Worker>(options_);  // removed by Admit
  const auto before = worker->at_first_segment.find(first_id);
  if (before != worker->at_first_segment.end()) {
    const Answer& answer = worker->answers[before->second];
    if (answer.sending == 0 && IsSamePull(answer.pull.header, pull.header)) return false;
    worker->Free(before->second);
  }
  const uint32_t block = pull.header.block;
  const Ticket ticket =
      worker->queue.Enqueue({.priority = block, .group = block, .bytes = bytes, .item = first_id});
  worker->at_first_segment[first_id] = ticket;
  if (ticket >= worker->answers.size()) worker->answers.resize(ticket + 1);
  worker->answers[ticket] = {.pull = std::move(pull), .first_id = first_id};
  return true;
}

std::optional<AnswerQueue::Turn> AnswerQueue::Next(PeerId worker, absl::Time now) {
  Worker* const of = Find(worker);
  if (of == nullptr) return std::nullopt;
  const std::optional<uint64_t> first_id = of->queue.Next();
  if (!first_id.has_value()) return std::nullopt;
  most_outstanding_bytes_ = std::max(most_outstanding_bytes_, of->queue.most_outstanding_bytes());
  const Ticket ticket = of->at_first_segment.at(*first_id);
  Answer& answer = of->answers[ticket];
  answer.sending = ++of->sendings;
  if (answer.sending == 0) answer.sending = ++of->sendings;  // 0 means unused
  answer.sent_at = now;
  return Turn{std::move(answer.pull), uint64_t{answer.sending} << 32 | ticket};
}

bool AnswerQueue::Received(PeerId worker, uint64_t number) {
  Worker* const of = Find(worker);
  const auto ticket = static_cast<Ticket>(number);
  const auto sending = static_cast<uint32_t>(number >> 32);
  const bool outstanding = of != nullptr && sending != 0 && ticket < of->answers.size() &&
                           of->answers[ticket].sending == sending;
  if (outstanding) of->Free(ticket);
  return outstanding;
}

void AnswerQueue::SetCredit(uint64_t credit_bytes) {
  options_.credit_bytes = credit_bytes;
  for (const auto& [peer, worker] : workers_) worker->queue.set_credit_bytes(credit_bytes);
}

void AnswerQueue::ListWorkers(std::vector<PeerId>& workers) const {
  for (const auto& [peer, worker] : workers_) workers.push_back(peer);
}

void AnswerQueue::OnTick(absl::Time now, std::vector<PeerId>& workers) {
  if (now < next_look_) return;
  next_look_ = now + options_.lost_after / 4;
  for (const auto& [peer, worker] : workers_) {
    bool lost = false;
    for (Ticket ticket = 0; ticket < worker->answers.size(); ++ticket) {
      const Answer& answer = worker->answers[ticket];
      if (answer.sending == 0 || now - answer.sent_at < options_.lost_after) continue;
      worker->Free(ticket);
      lost = true;
    }
    if (lost) workers.push_back(peer);
  }
}

uint64_t AnswerQueue::outstanding_bytes(PeerId worker) const {
  const Worker* const of = Find(worker);
  return of == nullptr ? 0 : of->queue.outstanding_bytes();
}

uint64_t AnswerQueue::outstanding_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [peer, worker] : workers_) bytes += worker->queue.outstanding_bytes();
  return bytes;
}

uint64_t AnswerQueue::waiting_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [peer, worker] : workers_) bytes += worker->queue.waiting_bytes();
  return bytes;
}

}  // namespace tug
