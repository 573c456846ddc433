#include "security/waiting_room.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace tug {

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

}  // namespace tug
