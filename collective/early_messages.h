// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_EARLY_MESSAGES_H_
#define TUG_COLLECTIVE_EARLY_MESSAGES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace tug {

// Messages of collectives that other ranks have started and this one has not; kept until it does.
// Not thread-safe.
class EarlyMessages {
 public:
  struct Early {
    uint32_t rank = 0;
    Message message;
  };

  // `max_size_bytes`: limit on the sum of payload bytes.
  explicit EarlyMessages(uint64_t max_size_bytes) : max_size_bytes_(max_size_bytes) {}

  // Keeps a message of a collective. `next`: number of the first collective not started here.
  // Returns the exceeded bound ("more than 5 bytes"), in which case the message is dropped; empty:
  // kept.
  std::string Keep(uint32_t rank, uint64_t next, Message message);
  // Removes and returns the messages of a collective that starts now, in order of arrival.
  std::vector<Early> Take(uint64_t number);
  void Clear();

 private:
  const uint64_t max_size_bytes_;
  std::map<uint64_t, std::vector<Early>> kept_;  // by collective number
  uint64_t bytes_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_EARLY_MESSAGES_H_
