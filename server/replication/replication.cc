// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replication.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

Replication::Replication(Options options, const SegmentTable& table,
                         std::span<const uint32_t> owned, const CopyLanes& copies)
    : options_(options), table_(table), segments_(table.size()) {
  for (const uint32_t id : owned) {
    if (copies[id].empty()) continue;
    with_copies_.push_back(id);
    for (const uint32_t lane : copies[id]) {
      segments_[id].copies.push_back({.lane = lane, .resend_after = options_.resend_first});
      ++copies_;
      ++following_;
    }
  }
}

absl::Time& Replication::HeardFrom(uint32_t lane) {
  for (LaneHeard& heard : heard_) {
    if (heard.lane == lane) return heard.at;
  }
  return heard_.emplace_back(LaneHeard{.lane = lane}).at;
}

uint64_t Replication::CopyBytes(uint32_t segment) const {
  return table_.segment(segment).elements() * options_.bytes_per_element;
}

// ---- requests ----

bool Replication::Open(const Owned& owned, const Copy& copy) const {
  switch (copy.state) {
    case State::kUnknown:
    case State::kFilling:
      return true;
    case State::kLagging:
      return false;
    case State::kFollowing:
      return owned.update == Update::kSent && !copy.acknowledged;
  }
  return false;
}

void Replication::Send(uint32_t segment, Copy& copy, MessageKind kind, absl::Time now) {
  copy.number = ++number_;
  copy.resend_after = options_.resend_first;
  copy.sent_at = now;
  requests_.push_back({kind, copy.lane, segment, copy.number});
}

// Resends the open request under its number.
void Replication::Send(uint32_t segment, Copy& copy, absl::Time now) {
  copy.sent_at = now;
  const MessageKind kind = copy.state == State::kUnknown   ? MessageKind::kCopyWanted
                           : copy.state == State::kFilling ? MessageKind::kCopy
                                                           : MessageKind::kUpdate;
  requests_.push_back({kind, copy.lane, segment, copy.number});
}

void Replication::AskAll(absl::Time now) {
  following_ = 0;
  for (const uint32_t id : with_copies_) {
    for (Copy& copy : segments_[id].copies) {
      copy.state = State::kUnknown;
      Send(id, copy, MessageKind::kCopyWanted, now);
    }
  }
}

void Replication::AskAgain(absl::Time now) {
  for (const uint32_t id : with_copies_) {
    Owned& owned = segments_[id];
    for (Copy& copy : owned.copies) {
      if (!Open(owned, copy)) continue;
      copy.resend_after = options_.resend_first;
      Send(id, copy, now);
    }
  }
}

void Replication::OnTick(absl::Time now) {
  for (const uint32_t id : with_copies_) {
    Owned& owned = segments_[id];
    for (Copy& copy : owned.copies) {
      if (!Open(owned, copy)) continue;
      const absl::Time quiet_since = std::max(copy.sent_at, HeardFrom(copy.lane));
      if (now - quiet_since < copy.resend_after && now - copy.sent_at < options_.resend_most) {
        continue;
      }
      copy.resend_after = std::min(2 * copy.resend_after, options_.resend_most);
      Send(id, copy, now);
    }
  }
}

// ---- updates ----

void Replication::Offer(uint32_t segment, absl::Time now) {
  Owned& owned = segments_[segment];
  TUG_CHECK(owned.update == Update::kNone) << "segment " << segment;
  owned.update = Update::kOffered;
  offered_.push_back(segment);
  BeginWaiting(now);
}

bool Replication::MaySend(const Owned& owned, uint32_t segment) const {
  bool follows = false;
  for (const Copy& copy : owned.copies) {
    if (copy.state == State::kUnknown || copy.state == State::kFilling || copy.ahead) return false;
    follows = follows || copy.state == State::kFollowing;
  }
  return !follows || updates_under_way_bytes_ == 0 ||
         updates_under_way_bytes_ + table_.segment(segment).bytes() <= options_.update_bytes;
}

void Replication::SendUpdate(uint32_t segment, absl::Time now) {
  Owned& owned = segments_[segment];
  owned.update = Update::kSent;
  bool sent = false;
  for (Copy& copy : owned.copies) {
    copy.acknowledged = false;
    if (copy.state != State::kFollowing) continue;
    Send(segment, copy, MessageKind::kUpdate, now);
    sent = true;
  }
  updates_under_way_bytes_ += table_.segment(segment).bytes();
  if (!sent) CheckAcknowledged(segment);
}

void Replication::CheckAcknowledged(uint32_t segment) {
  Owned& owned = segments_[segment];
  if (owned.update != Update::kSent) return;
  for (const Copy& copy : owned.copies) {
    if (copy.state == State::kFollowing && !copy.acknowledged) return;
  }
  owned.update = Update::kAcknowledged;
  updates_under_way_bytes_ -= table_.segment(segment).bytes();
  acknowledged_.push_back(segment);
}

void Replication::Applied(uint32_t segment, absl::Time now) {
  TUG_CHECK(segments_[segment].update == Update::kAcknowledged) << "segment " << segment;
  segments_[segment].update = Update::kNone;
  BeginWaiting(now);
}

// ---- filling replicas ----

// Only between two updates: the payload must equal the owner's state until it arrives.
bool Replication::MayFill(const Owned& owned, uint32_t segment) const {
  if (owned.update == Update::kSent || owned.update == Update::kAcknowledged) return false;
  return copies_under_way_bytes_ == 0 ||
         copies_under_way_bytes_ + CopyBytes(segment) <= options_.copy_bytes;
}

void Replication::BeginWaiting(absl::Time now) {
  if (lagging_ > 0) {
    // Replicas that updates wait for come first.
    for (const bool ahead : {true, false}) {
      for (const uint32_t id : with_copies_) {
        Owned& owned = segments_[id];
        for (Copy& copy : owned.copies) {
          if (copy.state != State::kLagging || copy.ahead != ahead || !MayFill(owned, id)) continue;
          copy.state = State::kFilling;
          copy.ahead = false;
          --lagging_;
          copies_under_way_bytes_ += CopyBytes(id);
          Send(id, copy, MessageKind::kCopy, now);
        }
      }
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < offered_.size(); ++i) {
    const uint32_t id = offered_[i];
    if (MaySend(segments_[id], id)) {
      SendUpdate(id, now);
    } else {
      offered_[kept++] = id;
    }
  }
  offered_.resize(kept);
}

void Replication::Follow(uint32_t segment, Copy& copy) {
  if (copy.state == State::kFilling) copies_under_way_bytes_ -= CopyBytes(segment);
  copy.state = State::kFollowing;
  copy.acknowledged = false;
  ++following_;
}

bool Replication::OnCopied(uint32_t lane, uint32_t segment, uint64_t version, uint64_t own,
                           uint64_t number, absl::Time now) {
  Owned& owned = segments_[segment];
  const auto found = std::find_if(owned.copies.begin(), owned.copies.end(),
                                  [&](const Copy& copy) { return copy.lane == lane; });
  if (found == owned.copies.end()) return false;
  HeardFrom(lane) = now;
  Copy& copy = *found;
  switch (copy.state) {
    case State::kUnknown:
      if (version == own) {
        Follow(segment, copy);
      } else {
        copy.state = State::kLagging;
        copy.ahead = version != kNoVersion && version > own;
        ++lagging_;
      }
      break;
    case State::kLagging:
      return true;
    case State::kFilling:
      if (version != own || number != copy.number) return true;
      Follow(segment, copy);
      break;
    case State::kFollowing:
      if (owned.update != Update::kSent || copy.acknowledged) return true;
      if (version == own + 1 && number == copy.number) {
        copy.acknowledged = true;
        CheckAcknowledged(segment);
      } else if (version == own && number == 0) {
        Send(segment, copy, now);  // it has entered this view, and dropped earlier messages
      }
      return true;
  }
  BeginWaiting(now);
  return true;
}

}  // namespace tug
