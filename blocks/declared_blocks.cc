// SPDX-License-Identifier: Apache-2.0
#include "blocks/declared_blocks.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"

namespace tug {
namespace {

bool IsName(const std::string& name) {
  if (name.empty() || name.size() > kMaxBlockNameBytes) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' ||
           c == '/';
  });
}

// Untrusted name as printable text of one line.
std::string Shown(const std::string& name) {
  std::string shown = name.substr(0, kMaxBlockNameBytes);
  for (char& c : shown) {
    if (!std::isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return shown;
}

// Number of elements; a value above kMaxDeclaredElements if there are more.
uint64_t BoundedElements(const BlockSpec& block) {
  uint64_t elements = 0;
  for (const TensorSpec& tensor : block.tensors()) {
    uint64_t product = 1;
    for (const uint64_t dimension : tensor.shape()) {
      if (dimension == 0) return 0;
      if (product > kMaxDeclaredElements / dimension) return kMaxDeclaredElements + 1;
      product *= dimension;
    }
    elements = std::min(elements + product, kMaxDeclaredElements + 1);
  }
  return elements;
}

std::string Describe(const BlockTable& table, int index) {
  if (index >= table.blocks_size()) return "missing";
  const BlockSpec& block = table.blocks(index);
  std::string text =
      absl::StrCat("'", Shown(block.name()), "' of ", BoundedElements(block), " elements");
  for (const TensorSpec& tensor : block.tensors()) {
    absl::StrAppend(&text, " (initially ", tensor.init_mean(), " +- ", tensor.init_std(),
                    tensor.weight_decay() ? ", weight decay)" : ")");
    break;  // a declared block has one tensor
  }
  return text;
}

}  // namespace

absl::Status CheckDeclaredBlock(const BlockSpec& block) {
  if (!IsName(block.name())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Shown(block.name()), "' is not a block's name: 1..", kMaxBlockNameBytes,
                     " letters, digits, '.', '_', '-' or '/'"));
  }
  const uint64_t elements = BoundedElements(block);
  if (elements == 0 || elements > kMaxDeclaredElements) {
    return absl::InvalidArgumentError(absl::StrCat("block '", block.name(), "' has ",
                                                   elements == 0 ? "no elements" : "too many",
                                                   ": declare 1..", kMaxDeclaredElements));
  }
  for (const TensorSpec& tensor : block.tensors()) {
    if (!std::isfinite(tensor.init_mean()) || !std::isfinite(tensor.init_std()) ||
        tensor.init_std() < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "block '", block.name(), "' has initial weights ", tensor.init_mean(), " +- ",
          tensor.init_std(), ": give a finite mean and a standard deviation >= 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDeclaredBlocks(const BlockTable& blocks, uint64_t segment_elements) {
  if (blocks.blocks().empty()) return absl::InvalidArgumentError("no blocks are declared");
  if (blocks.blocks_size() > kMaxDeclaredBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat(blocks.blocks_size(), " blocks are declared: at most ", kMaxDeclaredBlocks,
                     "; put several tensors into one block"));
  }
  std::set<std::string> names;
  uint64_t elements = 0;
  for (const BlockSpec& block : blocks.blocks()) {
    if (absl::Status checked = CheckDeclaredBlock(block); !checked.ok()) return checked;
    if (!names.insert(block.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("block '", block.name(), "' is declared twice"));
    }
    elements += BoundedElements(block);
  }
  // Each block, and each of its parameter groups, may end in a partial segment.
  const uint64_t segments = elements / segment_elements + 2 * names.size();
  if (elements > kMaxDeclaredElements || segments > kMaxDeclaredSegments) {
    return absl::InvalidArgumentError(absl::StrCat(
        "blocks of ", elements, " elements make about ", segments, " segments of ",
        segment_elements, ": at most ", kMaxDeclaredSegments, "; raise comm.segment_elements"));
  }
  return absl::OkStatus();
}

std::string FirstBlockDifference(const BlockTable& here, const BlockTable& there) {
  const int blocks = std::max(here.blocks_size(), there.blocks_size());
  for (int i = 0; i < blocks; ++i) {
    if (i < std::min(here.blocks_size(), there.blocks_size()) &&
        google::protobuf::util::MessageDifferencer::Equals(here.blocks(i), there.blocks(i))) {
      continue;
    }
    return absl::StrCat("block ", i, " is ", Describe(here, i), " here, ", Describe(there, i),
                        " there");
  }
  return "";
}

}  // namespace tug
