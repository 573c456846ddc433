// SPDX-License-Identifier: Apache-2.0
#include "security/client_hello.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

namespace tug {
namespace {

// Offset of the name in a server_name extension (RFC 6066, section 3): list length (2 bytes), type
// of the first name (1 byte; 0: host name), its length (2 bytes), its bytes.
constexpr size_t kNameBegin = 5;

struct Heard {
  bool hello = false;
  std::string name;
};

// Called once the complete ClientHello has arrived; aborts the handshake.
int OnClientHello(SSL* ssl, int* alert, void*) {
  Heard& heard = *static_cast<Heard*>(SSL_get_app_data(ssl));
  heard.hello = true;
  const unsigned char* data = nullptr;
  size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &size) == 1 &&
      size >= kNameBegin && data[2] == TLSEXT_NAMETYPE_host_name) {
    const size_t length = size_t{data[3]} << 8 | data[4];
    if (length <= size - kNameBegin) {
      heard.name.assign(reinterpret_cast<const char*>(data) + kNameBegin, length);
    }
  }
  *alert = SSL_AD_INTERNAL_ERROR;
  return SSL_CLIENT_HELLO_ERROR;
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

}  // namespace

void ClientHelloReader::FreeContext::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

absl::StatusOr<ClientHelloReader> ClientHelloReader::Create() {
  Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::InternalError("OpenSSL cannot create a context");
  SSL_CTX_set_client_hello_cb(context.get(), OnClientHello, nullptr);
  return ClientHelloReader(std::move(context));
}

absl::StatusOr<std::optional<std::string>> ClientHelloReader::ServerName(
    std::span<const std::byte> bytes) const {
  const std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context_.get()));
  BIO* const in = BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size()));
  BIO* const out = BIO_new(BIO_s_mem());
  if (ssl == nullptr || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return absl::InternalError("OpenSSL is out of memory");
  }
  BIO_set_mem_eof_return(in, -1);  // more may come
  SSL_set_bio(ssl.get(), in, out);
  Heard heard;
  SSL_set_app_data(ssl.get(), &heard);
  const int result = SSL_accept(ssl.get());
  const bool waits = SSL_get_error(ssl.get(), result) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  if (heard.hello) return std::optional<std::string>(std::move(heard.name));
  if (waits) return std::optional<std::string>();
  return absl::InvalidArgumentError("not a TLS ClientHello");
}

}  // namespace tug
