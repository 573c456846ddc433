// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_CLIENT_HELLO_H_
#define TUG_SECURITY_CLIENT_HELLO_H_

// Reads the server name that a TLS client requests (SNI) from its first message, the ClientHello,
// which is not encrypted. Parsed by OpenSSL.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

struct ssl_ctx_st;

namespace tug {

// Thread-safe.
class ClientHelloReader {
 public:
  // Errors: INTERNAL, from OpenSSL.
  static absl::StatusOr<ClientHelloReader> Create();

  // Server name that the client requests, "" if none; nullopt while more bytes are needed. `bytes`:
  // all bytes of the connection so far. INVALID_ARGUMENT: not a TLS ClientHello. INTERNAL: OpenSSL
  // has no memory.
  absl::StatusOr<std::optional<std::string>> ServerName(std::span<const std::byte> bytes) const;

 private:
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };
  using Context = std::unique_ptr<ssl_ctx_st, FreeContext>;

  explicit ClientHelloReader(Context context) : context_(std::move(context)) {}

  Context context_;
};

}  // namespace tug

#endif  // TUG_SECURITY_CLIENT_HELLO_H_
