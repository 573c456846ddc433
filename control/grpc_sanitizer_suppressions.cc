// SPDX-License-Identifier: Apache-2.0
// Sanitizer suppressions for tests that use gRPC. The distribution's Abseil, upb and OpenSSL are
// not instrumented, so data that gRPC's threads pass through them looks like races; c-ares leaks a
// few bytes. Linked into those tests only: tests without gRPC keep the stricter
// third_party/tsan.supp.

extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "race:libabsl_\n"
         "race:libupb.so\n"
         "race:libssl.so\n"
         "race:libcrypto.so\n";
}

extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }
