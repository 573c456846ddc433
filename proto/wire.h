#ifndef TUG_PROTO_WIRE_H_
#define TUG_PROTO_WIRE_H_

// The data-plane header: 104 bytes, fixed, little-endian, in front of every payload.
// docs/wire_format.md says the same in words. Protobuf carries control and configuration only.
//
// What a message is about is (timeline, block, segments, virtual workers, clock); the view fences:
// a receiver refuses, retriably, what was sent under an older view. Only (timeline, segment,
// virtual worker, clock) has state, and that tuple is the identity of a push.

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace tug {

inline constexpr uint32_t kWireMagic = 0x31475554;  // "TUG1"
inline constexpr uint16_t kWireVersion = 9;
// Version of the control service (proto/control.proto); both sides must have the same.
inline constexpr uint32_t kControlVersion = 11;
inline constexpr size_t kHeaderBytes = 104;
// No payload is larger; a receiver drops what claims to be.
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{512} << 20;

enum class MessageKind : uint8_t {
  kPush = 1,         // worker -> lane: gradient of segments, unscaled sum over the tokens of the
                     // virtual workers
  kReceived = 2,     // lane -> worker: push stored; returns the sender's credit
  kCommitted = 3,    // lane -> worker: push is part of `version`; its buffer and residual may be
                     // reused
  kDropped = 4,      // lane -> worker: push came too late and is not part of any version
  kPull = 5,         // worker -> lane: wants the weights of segments that `clock` begins with; also
                     // lane -> lane, for the workers of its host
  kWeights = 6,      // the answer to a pull, at `version`
  kNorms = 7,        // lane -> lane: FP64 sums of squares of the segments it owns, at `clock`
  kNormsWanted = 8,  // lane -> lane: send kNorms of `clock` (again)
  kRefused = 9,      // to the sender of a message of an old view or timeline; `view` and `timeline`
                     // are the current ones
  kDeferred = 10,    // lane -> worker: push not stored, for want of memory where sums wait; returns
                     // the sender's credit; to be sent again when asked
  kPushWanted = 11,  // lane -> worker: send that push (again)
  kWeightsReceived = 12,  // worker -> lane: the answer `ack_id` has come; returns its credit
  // Between the lane that owns a segment and those that keep a copy of it (server/replication.h);
  // each is about one segment:
  kUpdate = 13,      // owner -> copy: the update that makes `version` + 1
  kCopied = 14,      // copy -> owner: has `version`; answers `ack_id`
  kCopyWanted = 15,  // owner -> copy: say kCopied
  kCopy = 16,        // owner -> copy: the whole state of a segment at `version`
  // Between the ranks of a group (collective/rank_group.h):
  kElements = 17,      // rank -> rank: elements of a collective's buffer
  kInCollective = 18,  // rank -> rank: is at work in that collective, and has read what came
  kRankFailed = 19,    // rank -> rank: the group is given up, and which rank is at fault

  kPushAsked = 20,  // worker -> lane: has it that push? Of one that was received, and whose
                    // gradient the worker has let go of. Answered as a repeat of the push.

  kClearToSend = 21,  // rank -> rank: a step's messages to its sender may be sent, or have been
                      // received (PortWord of collective/port_order.h)
};

// What version a pull wants: that of its clock, or that or a newer one.
enum class Want : uint8_t { kExact = 0, kAtLeast = 1 };

// What a payload's bytes are. All decode to the elements of the header's segments.
enum class Codec : uint8_t {
  kNone = 0,     // FP32
  kBf16 = 1,     // weights: the upper halves of FP32, rounded to nearest even
  kRuns = 2,     // FP32 of some runs of elements, the others are 0 (push) or not asked for (pull,
                 // weights): see exchange/runs.h
  kFrames = 3,   // push: each segment encoded by itself, see compression/frames.h
  kInt8 = 4,     // weights: each segment encoded by compression/int8.h, one after the other
  kChanges = 5,  // pull: wants what follows on the weights of `version`, which the sender holds;
                 // weights: frames of the changes since the version before (compression/frames.h).
                 // A lane that does not have them answers with kNone: all of the weights that
                 // workers hold.
};

// WireHeader::version of who holds no weights: a pull's sender, a copy.
inline constexpr uint64_t kNoVersion = ~uint64_t{0};
// WireHeader::version of a push whose gradient is zero whatever the weights: of those that the lane
// has, so of staleness 0.
inline constexpr uint64_t kWhateverVersion = ~uint64_t{0};

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
                                      // (server/sum_tree.h)
  uint16_t virtual_worker_count = 0;  // 1 = a single one
  uint32_t sender = 0;                // PeerId (transport/transport.h)
  uint64_t clock = 0;    // a step, from 0: the push of clock c is part of version c + 1; a pull and
                         // its answer are of the clock that is to begin with the weights
  uint64_t version = 0;  // updates applied to weights; what its sender has, where it asks
  uint64_t token_count = 0;  // push: terms in the unscaled sum; the update divides by their total,
                             // once
  uint64_t ack_id = 0;       // of what is to be acknowledged, and of its acknowledgement: a number
                             // that its sender gives once. 0: nothing waits for an acknowledgement
  uint64_t payload_bytes = 0;
  uint64_t payload_xxh3 = 0;  // 0 = not computed

  friend bool operator==(const WireHeader&, const WireHeader&) = default;
};

// Where each field lies, in bytes; a test compares the table of docs/wire_format.md with this one.
// Magic and version keep their place in every version of the format.
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

// Writes magic, version and all fields, then the XXH3 of all bytes before the last 8 into those.
void EncodeHeader(const WireHeader& header, std::span<std::byte, kHeaderBytes> out);

// Checks magic, version, length (exactly kHeaderBytes), header checksum, enum ranges, the reserved
// byte and the payload bound. Never reads beyond `bytes`. Whether segments, workers and clocks
// exist is for the receiver's state machine to check.
// Errors: FAILED_PRECONDITION (another format version; names both), INVALID_ARGUMENT (all else,
// with what is wrong).
absl::StatusOr<WireHeader> DecodeHeader(std::span<const std::byte> bytes);

// XXH3-64 of a payload, 1 if it happens to be 0 (0 means "not computed").
uint64_t PayloadChecksum(std::span<const std::byte> payload);

}  // namespace tug

#endif  // TUG_PROTO_WIRE_H_
