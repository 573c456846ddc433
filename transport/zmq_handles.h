// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_ZMQ_HANDLES_H_
#define TUG_TRANSPORT_ZMQ_HANDLES_H_

// RAII owners of libzmq handles: context, socket, message frame.

#include <zmq.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/memory/block_pool.h"
#include "base/memory/lease.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace tug {

// Ending a context waits for the linger time of its sockets.
struct EndZmqContext {
  void operator()(void* context) const {
    while (zmq_ctx_term(context) != 0 && zmq_errno() == EINTR) {
    }
  }
};
struct CloseZmqSocket {
  void operator()(void* socket) const { zmq_close(socket); }
};
using ZmqContext = std::unique_ptr<void, EndZmqContext>;
using ZmqSocket = std::unique_ptr<void, CloseZmqSocket>;

// One frame of a message. May be destroyed on another thread than the one that received it.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&message_); }
  // A frame of `size_bytes`, uninitialised.
  explicit ZmqFrame(size_t size_bytes) { TUG_CHECK(zmq_msg_init_size(&message_, size_bytes) == 0); }
  // Sends the leased bytes without copying. The last thread to read them releases the lease, when
  // they have been sent or discarded. `pool` provides the memory that holds the lease until then;
  // it must live as long as the socket's context.
  ZmqFrame(Lease lease, BlockPool& pool) {
    if (lease.size_bytes() == 0) {
      zmq_msg_init(&message_);
      return;
    }
    // libzmq takes a void* but only reads it.
    void* const data = const_cast<std::byte*>(lease.bytes().data());
    const size_t size_bytes = lease.size_bytes();
    Held* const held = new (pool.Take(sizeof(Held))) Held{std::move(lease), pool};
    PassToLibzmq(held);
    TUG_CHECK(zmq_msg_init_data(&message_, data, size_bytes, Release, held) == 0);
  }
  ZmqFrame(ZmqFrame&& other) noexcept : ZmqFrame() { zmq_msg_move(&message_, &other.message_); }
  ZmqFrame& operator=(ZmqFrame&& other) noexcept {
    zmq_msg_move(&message_, &other.message_);
    return *this;
  }
  ~ZmqFrame() { zmq_msg_close(&message_); }

  std::span<std::byte> bytes() {
    return {static_cast<std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }
  bool more() const { return zmq_msg_more(&message_) != 0; }
  zmq_msg_t* get() { return &message_; }

 private:
  struct Held {
    Lease lease;
    BlockPool& pool;
  };

  static void Release(void*, void* hint) {
    TakeFromLibzmq(hint);
    Held* const held = static_cast<Held*>(hint);
    BlockPool& pool = held->pool;
    held->~Held();
    pool.Give(reinterpret_cast<std::byte*>(held), sizeof(Held));
  }

  // Tells ThreadSanitizer about libzmq's internal synchronisation, which it cannot see.
#ifdef __SANITIZE_THREAD__
  static void PassToLibzmq(void* what) { __tsan_release(what); }
  static void TakeFromLibzmq(void* what) { __tsan_acquire(what); }
#else
  static void PassToLibzmq(void*) {}
  static void TakeFromLibzmq(void*) {}
#endif

  zmq_msg_t message_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_ZMQ_HANDLES_H_
