// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/node_names.h"

#include <algorithm>

#include "base/check.h"
#include "proto/control.pb.h"
#include "proto/process_name.h"

namespace tug {

NodeName NodeNames::Give(NodeKind kind, std::optional<uint32_t> wish) {
  std::vector<Place>& places = places_[kind];
  const auto is_free = [&places](uint32_t index) {
    return index >= places.size() || !places[index].held;
  };
  uint32_t index = 0;
  if (wish.has_value() && *wish < kProcessIndexLimit && is_free(*wish)) {
    index = *wish;
  } else {
    index = static_cast<uint32_t>(std::ranges::find(places, false, &Place::held) - places.begin());
  }
  if (index >= places.size()) places.resize(index + 1);
  places[index].held = true;
  return {.index = index, .life = ++places[index].lives};
}

void NodeNames::Release(NodeKind kind, uint32_t index) {
  std::vector<Place>& places = places_[kind];
  TUG_CHECK(index < places.size() && places[index].held) << KindName(kind) << " " << index;
  places[index].held = false;
}

}  // namespace tug
