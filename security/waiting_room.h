#ifndef TUG_SECURITY_WAITING_ROOM_H_
#define TUG_SECURITY_WAITING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace tug {

// Connections that have not yet said who they are. Which one has to go when there are too many is
// decided here: of the address that has most, the one that came first. An address with many can
// thus never crowd out another's few.
class WaitingRoom {
 public:
  struct Guest {
    int socket = -1;
    uint64_t cookie = 0;  // the connection's, whatever has its descriptor later
    std::string address;
  };

  explicit WaitingRoom(size_t most) : most_(most) {}

  // Takes the place of a guest with the same descriptor, whose end was not heard of.
  void Enter(Guest guest);
  void Leave(int socket);

  bool overfull() const { return guests_.size() > most_; }
  // REQUIRES: there is one.
  const Guest& FirstToGo() const;
  // In the order in which they came.
  const std::list<Guest>& guests() const { return guests_; }

 private:
  const size_t most_;
  std::list<Guest> guests_;
};

// How many of `most` guests this process gives room: each is a descriptor, and of those that it may
// open they get a sixteenth, but for a few.
size_t AffordableGuests(size_t most);

}  // namespace tug

#endif  // TUG_SECURITY_WAITING_ROOM_H_
