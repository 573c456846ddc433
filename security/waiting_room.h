// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_WAITING_ROOM_H_
#define TUG_SECURITY_WAITING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace tug {

// Connections that have not authenticated yet. Selects which one to close when there are too many:
// the oldest of the address that has most. An address with many connections thus never crowds out
// another with few.
class WaitingRoom {
 public:
  struct Guest {
    int socket = -1;
    uint64_t cookie = 0;  // of the connection; tells it from a later one with the same descriptor
    std::string address;
  };

  explicit WaitingRoom(size_t most) : most_(most) {}

  // Replaces a guest with the same descriptor, whose end was not noticed.
  void Enter(Guest guest);
  void Leave(int socket);

  bool overfull() const { return guests_.size() > most_; }
  // REQUIRES: the room is not empty.
  const Guest& FirstToGo() const;
  // In order of arrival.
  const std::list<Guest>& guests() const { return guests_; }

 private:
  const size_t most_;
  std::list<Guest> guests_;
};

// Guests that this process can afford, at most `most`: each uses a descriptor, and all of them may
// use a sixteenth of the open-file limit, or 8 if that is more.
size_t AffordableGuests(size_t most);

}  // namespace tug

#endif  // TUG_SECURITY_WAITING_ROOM_H_
