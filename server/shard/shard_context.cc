// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard_context.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

std::unique_ptr<const SyncPolicy> PolicyOf(const ShardOptions& options) {
  std::unique_ptr<const SyncPolicy> policy = MakeSyncPolicy(options.sync);
  if (!options.replace_policy_for_test) return policy;
  return options.replace_policy_for_test(std::move(policy));
}

}  // namespace

ShardContext::ShardContext(ShardOptions shard_options, const SegmentTable& segments,
                           ShardSinks shard_sinks)
    : options(std::move(shard_options)),
      table(segments),
      sinks(std::move(shard_sinks)),
      policy(PolicyOf(options)),
      view(options.view),
      live(options.virtual_workers) {}

WireHeader ShardContext::Header(MessageKind kind) const {
  WireHeader header;
  header.kind = kind;
  header.job = options.job;
  header.timeline = options.timeline;
  header.view = view;
  return header;
}

WireHeader ShardContext::SegmentHeader(MessageKind kind, uint32_t segment) const {
  WireHeader header = Header(kind);
  header.block = table.segment(segment).block;
  header.first_segment = table.segment(segment).index;
  header.segment_count = 1;
  return header;
}

void ShardContext::Reply(MessageKind kind, const WireHeader& to, uint64_t version) const {
  WireHeader header = to;
  header.kind = kind;
  header.timeline = options.timeline;
  header.view = view;
  header.version = version;
  sinks.send({to.sender, header, Lease()});
}

void ShardContext::ReplyToPush(MessageKind kind, const PushKey& key) const {
  WireHeader header = Header(kind);
  SetPush(key, header);
  sinks.send({key.sender, header, Lease()});
}

void ShardContext::SendCommitted(const PushKey& key, uint64_t version) const {
  WireHeader header = Header(MessageKind::kCommitted);
  SetPush(key, header);
  header.version = version;
  sinks.send({key.sender, header, Lease()});
}

void ShardContext::Malformed(const WireHeader& header, const char* why) {
  if (counters.malformed++ > 0) return;
  sinks.notice(
      {absl::StrCat("malformed/", options.lane),
       absl::StrCat("dropped an invalid message (kind ", static_cast<int>(header.kind), " from ",
                    PeerName(header.sender), "): ", why,
                    "; further ones are only counted. Run the same version of tug on all hosts")});
}

bool ShardContext::RangeExists(const WireHeader& header) const {
  if (header.block >= table.num_blocks()) return false;
  const uint32_t segments = table.segments_in_block(header.block);
  return header.segment_count > 0 && header.first_segment < segments &&
         header.segment_count <= segments - header.first_segment;
}

uint64_t ShardContext::RangeElements(const WireHeader& header) const {
  const uint32_t first = FirstId(header);
  return table.segment(first + header.segment_count - 1).end - table.segment(first).begin;
}

TraceEvent ShardContext::EventOf(TraceKind kind, const WireHeader& header) const {
  return {.kind = kind,
          .block = header.block,
          .first_segment = header.first_segment,
          .segment_count = header.segment_count,
          .virtual_worker = header.virtual_worker,
          // A lane that pulls for its host appears as its server.
          .peer = IsWorker(header.sender) ? header.sender & ~kWorkerBit
                                          : (header.sender - LanePeer(0)) / kMaxLanesPerServer,
          .clock = header.clock,
          .bytes = header.payload_bytes};
}

}  // namespace tug
