// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROTO_WIRE_H_
#define TUG_PROTO_WIRE_H_

// The data-plane header: 104 bytes, fixed, little-endian, in front of every payload.
// docs/wire_format.md describes it in words. Protobuf carries control and configuration only.
//
// A message is about (timeline, block, segments, virtual workers, clock). The view is a fence: a
// lane rejects pushes and pulls of another view, and the sender retries. Only (timeline, segment,
// virtual worker, clock) has state; that tuple identifies a push.

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace tug {

inline constexpr uint32_t kWireMagic = 0x31475554;  // "TUG1"
inline constexpr uint16_t kWireVersion = 9;
// Version of the control service (proto/control.proto); both sides must have the same.
inline constexpr uint32_t kControlVersion = 12;
inline constexpr size_t kHeaderBytes = 104;
// Largest payload; a receiver drops a message that announces more.
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{512} << 20;

enum class MessageKind : uint8_t {
  kPush = 1,         // worker -> lane: gradient of segments, unscaled sum over the tokens of the
                     // virtual workers
  kReceived = 2,     // lane -> worker: push stored; returns the sender's credit
  kCommitted = 3,    // lane -> worker: push is part of `version`; its buffer and residual may be
                     // reused
  kDropped = 4,      // lane -> worker: push came too late and is not part of any version
  kPull = 5,         // worker -> lane: requests the weights of segments that `clock` begins with;
                     // also lane -> lane, for the workers of its host
  kWeights = 6,      // reply to a pull, at `version`
  kNorms = 7,        // lane -> lane: FP64 sums of squares of the sender's own segments, at `clock`
  kNormsWanted = 8,  // lane -> lane: requests kNorms of `clock` (again)
  kRefused = 9,      // to a worker, or a lane that pulls: the message was of another view or
                     // timeline (`view` and `timeline` are the current ones), or the pulled version
                     // is no longer kept
  kDeferred = 10,    // lane -> worker: push not stored, for lack of memory for pending sums;
                     // returns the sender's credit; resend on request
  kPushWanted = 11,  // lane -> worker: requests that push (again)
  kWeightsReceived = 12,  // worker -> lane: the reply `ack_id` has arrived; returns its credit
  // Between the owner of a segment and the lanes with a replica of it
  // (server/replication/replication.h); each is about one segment:
  kUpdate = 13,      // owner -> replica: the update that makes `version` + 1
  kCopied = 14,      // replica -> owner: has `version`; acknowledges `ack_id`
  kCopyWanted = 15,  // owner -> replica: requests kCopied
  kCopy = 16,        // owner -> replica: the whole state of a segment at `version`
  // Between the ranks of a group (collective/rank_group.h):
  kElements = 17,      // rank -> rank: elements of a collective's buffer
  kInCollective = 18,  // rank -> rank: is running that collective, and has read its messages
  kRankFailed = 19,    // rank -> rank: the group has failed; names the rank at fault

  kPushAsked = 20,  // worker -> lane: asks whether the lane has this push, which it acknowledged
                    // before the worker released the gradient. Answered like a repeat of the push.

  kClearToSend = 21,  // rank -> rank: messages of a step to its sender may be sent, or have been
                      // received (PortWord of collective/port_order.h)
};

// Version that a pull requests: that of its clock, or at least that.
enum class Want : uint8_t { kExact = 0, kAtLeast = 1 };

// Format of a payload. All formats decode to the elements of the header's segments.
enum class Codec : uint8_t {
  kNone = 0,     // FP32
  kBf16 = 1,     // weights: the upper halves of FP32, rounded to nearest even
  kRuns = 2,     // FP32 of some runs of elements; the others are 0 (push) or not requested (pull,
                 // weights): see blocks/runs.h
  kFrames = 3,   // push: each segment encoded separately, see compression/codecs/frames.h
  kInt8 = 4,     // weights: each segment encoded by compression/dense/int8.h, one after another
  kChanges = 5,  // pull: requests the changes after `version`, which the sender holds; weights:
                 // frames of the changes since the previous version (compression/codecs/frames.h).
                 // A lane that does not have them replies with kNone: all of the weights that
                 // workers hold.
};

// WireHeader::version of a sender that holds no weights: of a pull, or a replica.
inline constexpr uint64_t kNoVersion = ~uint64_t{0};
// WireHeader::version of a push whose gradient is zero whatever the weights: the lane counts it as
// computed from its current weights, with staleness 0.
inline constexpr uint64_t kAnyWeightsVersion = ~uint64_t{0};

struct WireHeader {
  MessageKind kind = MessageKind::kPush;
  Codec codec = Codec::kNone;
  Want want = Want::kExact;
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  uint32_t block = 0;
  uint32_t first_segment = 0;  // index within the block
  uint32_t segment_count = 0;
  uint32_t virtual_worker = 0;        // first of an aligned group: a subtree of the sum tree
                                      // (server/sums/sum_tree.h)
  uint16_t virtual_worker_count = 0;  // 1 = a single one
  uint32_t sender = 0;                // PeerId (transport/transport.h)
  uint64_t clock = 0;    // step, from 0: a push of clock c is part of version c + 1; a pull and its
                         // reply carry the clock that begins with these weights
  uint64_t version = 0;  // updates applied to weights; in a request, the version its sender has
  uint64_t token_count = 0;  // push: terms in the unscaled sum; the update divides by their total,
                             // once
  uint64_t ack_id = 0;       // number of a message to acknowledge, unique per sender, and of its
                             // acknowledgement; 0: no acknowledgement expected
  uint64_t payload_bytes = 0;
  uint64_t payload_xxh3 = 0;  // 0 = not computed

  friend bool operator==(const WireHeader&, const WireHeader&) = default;
};

// Byte offset of each field; a test compares the table of docs/wire_format.md with this one. Magic
// and version keep their place in every version of the format.
struct WireField {
  const char* name;
  size_t offset;
  size_t size;
};
inline constexpr WireField kWireFields[] = {
    {"magic", 0, 4},
    {"format_version", 4, 2},
    {"kind", 6, 1},
    {"codec", 7, 1},
    {"want", 8, 1},
    {"reserved", 9, 1},
    {"virtual_worker_count", 10, 2},
    {"sender", 12, 4},
    {"job", 16, 8},
    {"timeline", 24, 4},
    {"view", 28, 4},
    {"block", 32, 4},
    {"first_segment", 36, 4},
    {"segment_count", 40, 4},
    {"virtual_worker", 44, 4},
    {"clock", 48, 8},
    {"version", 56, 8},
    {"token_count", 64, 8},
    {"ack_id", 72, 8},
    {"payload_bytes", 80, 8},
    {"payload_xxh3", 88, 8},
    {"header_xxh3", 96, 8},
};

// Writes magic, version and all fields, then stores the XXH3 of all bytes but the last 8 in those.
void EncodeHeader(const WireHeader& header, std::span<std::byte, kHeaderBytes> out);

// Checks magic, version, length (exactly kHeaderBytes), header checksum, enum ranges, the reserved
// byte and the payload limit. Never reads beyond `bytes`. The receiver's state machine must check
// that segments, workers and clocks exist. Errors: FAILED_PRECONDITION (another format version;
// names both), INVALID_ARGUMENT (any other fault, which it describes).
absl::StatusOr<WireHeader> DecodeHeader(std::span<const std::byte> bytes);

// XXH3-64 of a payload; 1 if that is 0 (0 means "not computed").
uint64_t PayloadChecksum(std::span<const std::byte> payload);

}  // namespace tug

#endif  // TUG_PROTO_WIRE_H_
