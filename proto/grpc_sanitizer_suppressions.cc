// Sanitizers, for tests that use gRPC. The distribution's Abseil, upb and OpenSSL are not
// instrumented, so what gRPC's threads hand one another through them looks like races; c-ares
// forgets a few bytes. Linked into those tests only: a test that does not use gRPC keeps the
// stricter third_party/tsan.supp alone.

extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "race:libabsl_\n"
         "race:libupb.so\n"
         "race:libssl.so\n"
         "race:libcrypto.so\n";
}

extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }
