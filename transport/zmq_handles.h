#ifndef TUG_TRANSPORT_ZMQ_HANDLES_H_
#define TUG_TRANSPORT_ZMQ_HANDLES_H_

// Ownership of libzmq's handles: context, socket, message frame.

#include <zmq.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/block_pool.h"
#include "base/check.h"
#include "base/lease.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace tug {

// Ending a context waits until its sockets' linger time is over.
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

// One frame of a message. May be destroyed on another thread than it was received on.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&message_); }
  // A frame of `size_bytes`, not initialised.
  explicit ZmqFrame(size_t size_bytes) { TUG_CHECK(zmq_msg_init_size(&message_, size_bytes) == 0); }
  // Sends from the leased bytes without copying; the lease is released, by whichever thread is the
  // last to read, when they have been sent or given up. `pool` has the memory that holds the lease
  // until then, and lives as long as the socket's context.
  ZmqFrame(Lease lease, BlockPool& pool) {
    if (lease.size_bytes() == 0) {
      zmq_msg_init(&message_);
      return;
    }
    // libzmq takes void* but only reads.
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

  // libzmq orders its threads by itself, which ThreadSanitizer cannot see: this says so.
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
