// SPDX-License-Identifier: Apache-2.0
#include "security/client_hello.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <iostream>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace tug {
namespace {

// ClientHello of a client that requests the server `name`.
std::string HelloFor(const std::string& name) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  if (!name.empty()) SSL_set_tlsext_host_name(ssl, name.c_str());
  SSL_connect(ssl);
  char* data = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &data);
  const std::string hello(data, static_cast<size_t>(size));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return hello;
}

auto NameIn(const ClientHelloReader& reader, const std::string& said) {
  return reader.ServerName(std::as_bytes(std::span(said)));
}

TEST(ClientHelloReader, FindsTheServerThatIsWanted) {
  const ClientHelloReader reader = ClientHelloReader::Create().value();
  for (const std::string& name : {std::string(), std::string("a"), std::string("b.keys.tugboat")}) {
    const std::string hello = HelloFor(name);
    ASSERT_GT(hello.size(), 50u);
    EXPECT_EQ(NameIn(reader, hello).value(), name);
    EXPECT_EQ(NameIn(reader, hello + "more").value(), name);
    for (size_t length = 0; length < hello.size(); ++length) {
      const auto cut = NameIn(reader, hello.substr(0, length));
      ASSERT_TRUE(cut.ok()) << length;
      ASSERT_EQ(*cut, std::nullopt) << length;
    }
  }
}

TEST(ClientHelloReader, SurvivesWhatIsNoHello) {
  constexpr uint64_t kSeed = 31415;
  std::cout << "seed " << kSeed << std::endl;
  std::mt19937_64 random(kSeed);
  const ClientHelloReader reader = ClientHelloReader::Create().value();
  const std::string hello = HelloFor("b.keys.tugboat");
  for (int round = 0; round < 5000; ++round) {
    std::string said = hello;
    for (size_t flips = 1 + random() % 5; flips > 0; --flips) {
      said[random() % said.size()] ^= static_cast<char>(1 + random() % 255);
    }
    NameIn(reader, said).status().IgnoreError();
  }
  EXPECT_FALSE(NameIn(reader, "GET / HTTP/1.1\r\n\r\n").ok());
}

}  // namespace
}  // namespace tug
