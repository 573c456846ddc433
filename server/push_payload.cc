#include "server/push_payload.h"

#include <memory>
#include <utility>

#include "exchange/runs.h"

namespace tug {

std::optional<Message> DensePush(const Message& message, uint64_t elements) {
  const std::optional<EncodedRuns> runs =
      DecodeRuns(message.payload.bytes(), elements, /*with_values=*/true);
  if (!runs.has_value()) return std::nullopt;
  auto dense = std::make_shared<AlignedBuffer>(elements * sizeof(float));  // zeros
  Scatter(*runs, dense->floats());
  const std::span<const float> floats = std::as_const(*dense).floats();
  Message decoded{message.header, Lease(std::move(dense), floats), Home::kReceiver};
  decoded.header.codec = Codec::kNone;
  return decoded;
}

}  // namespace tug
