// SPDX-License-Identifier: Apache-2.0
#include "server/shard/norm_exchange.h"

#include <memory>
#include <numeric>
#include <utility>

namespace tug {

NormExchange::NormExchange(ShardContext& context, NormLedger::Scope scope)
    : context_(context),
      ledger_(context.table, context.options.lane_of_segment, context.options.lane, scope,
              context.options.start_version) {}

std::vector<uint32_t> NormExchange::Scopes() const {
  if (ledger_.IsScope(NormLedger::kAllBlocks)) return {NormLedger::kAllBlocks};
  std::vector<uint32_t> scopes(context_.table.num_blocks());
  std::iota(scopes.begin(), scopes.end(), 0);
  return scopes;
}

NormExchange::Complete NormExchange::IfComplete(uint32_t scope) const {
  return ledger_.complete(scope) ? Complete(scope) : std::nullopt;
}

NormExchange::Complete NormExchange::Add(uint32_t segment, uint64_t version,
                                         const NormEntry& entry) {
  const uint32_t scope = ledger_.ScopeOfBlock(context_.table.segment(segment).block);
  if (version > ledger_.clock(scope) || !ledger_.AddOwn(segment, entry)) return std::nullopt;
  asked_at_ = context_.now;
  for (const uint32_t lane : ledger_.OtherLanes(scope)) Send(scope, ledger_.clock(scope), lane);
  return IfComplete(scope);
}

NormExchange::Complete NormExchange::OnNorms(const Message& message) {
  const WireHeader& header = message.header;
  const uint32_t from_lane = header.sender - LanePeer(0);
  if (IsWorker(header.sender) ||
      !ledger_.AddRemote(header.block, from_lane, header.clock, message.payload.bytes())) {
    context_.Malformed(header, "has norms of an unknown scope, sender or size");
    return std::nullopt;
  }
  return IfComplete(header.block);
}

void NormExchange::OnNormsWanted(const WireHeader& header) {
  if (IsWorker(header.sender) || !ledger_.IsScope(header.block)) {
    return context_.Malformed(header, "requests norms of an unknown scope");
  }
  Send(header.block, header.clock, header.sender - LanePeer(0));
}

NormExchange::Closed NormExchange::Close(uint32_t scope) {
  Closed closed{ledger_.clock(scope), ledger_.OwnSegments(scope), ledger_.Fold(scope)};
  ledger_.Advance(scope);
  return closed;
}

void NormExchange::Send(uint32_t scope, uint64_t clock, uint32_t to_lane) {
  std::optional<std::vector<NormEntry>> entries = ledger_.OwnEntries(scope, clock);
  if (!entries.has_value()) return;
  auto owned = std::make_shared<const std::vector<NormEntry>>(*std::move(entries));
  WireHeader header = context_.Header(MessageKind::kNorms);
  header.block = scope;
  header.clock = clock;
  context_.sinks.send({LanePeer(to_lane), header, Lease(owned, std::as_bytes(std::span(*owned)))});
}

void NormExchange::Ask(uint32_t scope) {
  if (ledger_.OwnSegments(scope).empty()) return;
  for (const uint32_t lane : ledger_.MissingLanes(scope)) {
    WireHeader header = context_.Header(MessageKind::kNormsWanted);
    header.block = scope;
    header.clock = ledger_.clock(scope);
    context_.sinks.send({LanePeer(lane), header, Lease()});
  }
}

void NormExchange::OnTick() {
  if (context_.now - asked_at_ < context_.options.resend_after) return;
  asked_at_ = context_.now;
  for (const uint32_t scope : Scopes()) {
    if (ledger_.Waiting(scope)) Ask(scope);
  }
}

void NormExchange::EnterView() {
  for (const uint32_t scope : Scopes()) {
    const uint64_t clock = ledger_.clock(scope);
    for (const uint32_t lane : ledger_.OtherLanes(scope)) {
      if (clock > context_.options.start_version) Send(scope, clock - 1, lane);
      Send(scope, clock, lane);
    }
    // Ask even before the own sums are complete: a lane that has closed this clock does not send
    // its norms by itself.
    Ask(scope);
  }
  asked_at_ = context_.now;
}

bool NormExchange::RecoverState(const OwnSegments& own, std::span<const HeldSegment> held) {
  std::vector<NormLedger::OwnSegment> norms;
  for (size_t i = 0; i < held.size(); ++i) {
    norms.push_back({own.ids()[i], held[i].version, held[i].norm});
  }
  return ledger_.RecoverState(norms, context_.options.start_version);
}

}  // namespace tug
