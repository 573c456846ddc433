// SPDX-License-Identifier: Apache-2.0
#include "security/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

constexpr char kNotBefore[] = "20000101000000Z";
constexpr char kNotAfter[] = "21000101000000Z";
constexpr long kVersion3 = 2;  // X.509 counts versions from 0

template <auto function>
struct Calls {
  template <typename T>
  void operator()(T* what) const {
    function(what);
  }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Calls<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Calls<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Calls<X509_EXTENSION_free>>;
using Bio = std::unique_ptr<BIO, FreeBio>;

absl::Status OpenSslError(const char* what) {
  char text[256] = "";
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return absl::InternalError(absl::StrCat("cannot make ", what, ": ", text));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

Bio Reading(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

bool SetSerial(X509* certificate) {
  uint64_t serial = 0;
  return RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1;
}

bool SetName(X509* certificate, const std::string& name) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(name.c_str());
  if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, bytes, -1, -1, 0) != 1 ||
      X509_set_issuer_name(certificate, subject) != 1) {
    return false;
  }
  const std::string names = absl::StrCat("DNS:", name);
  const Extension extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SignedBy(X509* certificate, EVP_PKEY* key) {
  return X509_set_version(certificate, kVersion3) == 1 &&
         ASN1_TIME_set_string(X509_getm_notBefore(certificate), kNotBefore) == 1 &&
         ASN1_TIME_set_string(X509_getm_notAfter(certificate), kNotAfter) == 1 &&
         X509_set_pubkey(certificate, key) == 1 && X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

absl::StatusOr<TlsIdentity> MakeTlsIdentity(const std::string& name) {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("a TLS key");
  const Certificate certificate(X509_new());
  if (certificate == nullptr || !SetSerial(certificate.get()) ||
      !SetName(certificate.get(), name) || !SignedBy(certificate.get(), key.get())) {
    return OpenSslError("a TLS certificate");
  }
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (certificate_text == nullptr || key_text == nullptr ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return OpenSslError("the text of a TLS key");
  }
  return TlsIdentity{TextOf(certificate_text.get()), TextOf(key_text.get())};
}

bool IsTlsIdentityOf(const TlsIdentity& identity, const std::string& name) {
  const Bio certificate_text = Reading(identity.certificate);
  const Bio key_text = Reading(identity.private_key);
  const Certificate certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  const bool whole = certificate != nullptr && key != nullptr &&
                     X509_check_private_key(certificate.get(), key.get()) == 1 &&
                     X509_check_host(certificate.get(), name.data(), name.size(), 0, nullptr) == 1;
  ERR_clear_error();
  return whole;
}

}  // namespace tug
