// SPDX-License-Identifier: Apache-2.0
#include "security/waiting_room.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

std::vector<int> SocketsOf(const WaitingRoom& room) {
  std::vector<int> sockets;
  for (const WaitingRoom::Guest& guest : room.guests()) sockets.push_back(guest.socket);
  return sockets;
}

// Removes guests until the room is no longer overfull.
void MakeRoom(WaitingRoom& room) {
  while (room.overfull()) room.Leave(room.FirstToGo().socket);
}

TEST(WaitingRoom, RemovesFirstConnectionOfOneAddress) {
  WaitingRoom room(2);
  for (int socket = 1; socket <= 4; ++socket) {
    room.Enter({.socket = socket, .address = "10.0.0.1"});
    MakeRoom(room);
  }
  EXPECT_THAT(SocketsOf(room), ElementsAre(3, 4));
}

TEST(WaitingRoom, AddressWithManyConnectionsDisplacesOnlyItsOwn) {
  WaitingRoom room(4);
  room.Enter({.socket = 1, .address = "10.0.0.1"});
  room.Enter({.socket = 2, .address = "10.0.0.2"});
  for (int socket = 10; socket < 1000; ++socket) {
    room.Enter({.socket = socket, .address = "10.0.0.9"});
    MakeRoom(room);
  }
  EXPECT_THAT(SocketsOf(room), ElementsAre(1, 2, 998, 999));
}

TEST(WaitingRoom, RemovesFirstOfAddressesWithEqualCounts) {
  WaitingRoom room(2);
  for (int socket = 1; socket <= 3; ++socket) {
    room.Enter({.socket = socket, .address = "10.0.0." + std::to_string(socket)});
  }
  EXPECT_EQ(room.FirstToGo().socket, 1);
}

TEST(WaitingRoom, ADescriptorIsOfTheLastThatHadIt) {
  WaitingRoom room(4);
  room.Enter({.socket = 1, .cookie = 7, .address = "10.0.0.1"});
  room.Enter({.socket = 2, .cookie = 8, .address = "10.0.0.1"});
  room.Enter({.socket = 1, .cookie = 9, .address = "10.0.0.2"});
  EXPECT_THAT(SocketsOf(room), ElementsAre(2, 1));
  EXPECT_EQ(room.guests().back().cookie, 9u);
  room.Leave(3);
  room.Leave(2);
  EXPECT_THAT(SocketsOf(room), ElementsAre(1));
}

}  // namespace
}  // namespace tug
