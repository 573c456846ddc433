// SPDX-License-Identifier: Apache-2.0
#include "collective/collective_header.h"

#include "absl/strings/str_cat.h"

namespace tug {

std::string CollectiveText(const CollectiveShape& shape) {
  const std::string type = shape.type <= static_cast<uint32_t>(ElementType::kFp16)
                               ? ElementTypeName(static_cast<ElementType>(shape.type))
                               : absl::StrCat("type ", shape.type);
  return absl::StrCat(shape.elements, " ", type, " elements in ", shape.parts, " parts and ",
                      shape.steps, " steps");
}

void WriteCollectiveHeader(const CollectiveHeader& from, WireHeader& to) {
  to.clock = from.number;
  to.version = from.shape.elements;
  to.virtual_worker = from.shape.type;
  to.block = from.shape.parts;
  to.segment_count = from.shape.steps;
  to.view = from.over_network ? 1 : 0;
  to.first_segment = from.message;
  if (to.kind == MessageKind::kClearToSend) {
    to.token_count = from.received ? 1 : 0;
  } else {
    to.token_count = from.first_element;
  }
}

CollectiveHeader ReadCollectiveHeader(const WireHeader& header) {
  CollectiveHeader read;
  read.number = header.clock;
  read.shape = {.elements = header.version,
                .type = header.virtual_worker,
                .parts = header.block,
                .steps = header.segment_count};
  read.over_network = header.view != 0;
  read.message = header.first_segment;
  if (header.kind == MessageKind::kClearToSend) {
    read.received = header.token_count == 1;
  } else {
    read.first_element = header.token_count;
  }
  return read;
}

void WriteRankFailure(const RankFailure& from, WireHeader& to) {
  to.virtual_worker = from.rank;
  to.block = from.code;
}

RankFailure ReadRankFailure(const WireHeader& header) {
  return {.rank = header.virtual_worker, .code = header.block};
}

}  // namespace tug
