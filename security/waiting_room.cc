// SPDX-License-Identifier: Apache-2.0
#include "security/waiting_room.h"

#include <sys/resource.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace tug {
namespace {

constexpr rlim_t kShareOfGuests = 16;
constexpr size_t kFewestGuests = 8;

}  // namespace

void WaitingRoom::Enter(Guest guest) {
  Leave(guest.socket);
  guests_.push_back(std::move(guest));
}

void WaitingRoom::Leave(int socket) {
  guests_.remove_if([socket](const Guest& guest) { return guest.socket == socket; });
}

const WaitingRoom::Guest& WaitingRoom::FirstToGo() const {
  TUG_CHECK(!guests_.empty());
  std::unordered_map<std::string_view, size_t> of_address;
  size_t most = 0;
  for (const Guest& guest : guests_) most = std::max(most, ++of_address[guest.address]);
  return *std::ranges::find_if(
      guests_, [&](const Guest& guest) { return of_address[guest.address] == most; });
}

size_t AffordableGuests(size_t most) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return most;
  return std::min<size_t>(most, std::max<size_t>(kFewestGuests, limit.rlim_cur / kShareOfGuests));
}

}  // namespace tug
