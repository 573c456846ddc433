#ifndef TUG_SECURITY_CLIENT_HELLO_H_
#define TUG_SECURITY_CLIENT_HELLO_H_

// What a TLS client says first, and in clear text: which server it wants. Read by OpenSSL.

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
  // Errors: INTERNAL, of OpenSSL.
  static absl::StatusOr<ClientHelloReader> Create();

  // The name of the server that is asked for, "" if the client names none; nothing while more bytes
  // are needed. `bytes`: from the first one of the connection on. INVALID_ARGUMENT: this is not
  // what a TLS client says.
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
