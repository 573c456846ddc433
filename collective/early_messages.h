#ifndef TUG_COLLECTIVE_EARLY_MESSAGES_H_
#define TUG_COLLECTIVE_EARLY_MESSAGES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace tug {

// Messages of collectives that other ranks have started and this one has not, until it does. Not
// thread-safe.
class EarlyMessages {
 public:
  struct Early {
    uint32_t rank = 0;
    Message message;
  };

  // `most_bytes`: of payloads.
  explicit EarlyMessages(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Keeps a message of a collective; `next`: the first that is not started. What would
  // exceed a bound is not kept: returns which ("more than 5 bytes").
  std::string Keep(uint32_t rank, uint64_t next, Message message);
  // Those of a collective that starts now, in the order in which they came.
  std::vector<Early> Take(uint64_t number);
  void Clear();

 private:
  const uint64_t most_bytes_;
  std::map<uint64_t, std::vector<Early>> kept_;  // by number
  uint64_t bytes_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_EARLY_MESSAGES_H_
