// SPDX-License-Identifier: Apache-2.0
#include "security/job_keys.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(MakeJobKeys, TokenModeHasOnlyAToken) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::TOKEN).value();
  EXPECT_EQ(keys.mode, SecurityConfig::TOKEN);
  EXPECT_THAT(keys.token, SizeIs(kTokenDigits));
  EXPECT_THAT(keys.curve.secret_key, IsEmpty());
  EXPECT_THAT(keys.tls.private_key, IsEmpty());
}

TEST(MakeJobKeys, CurveModeHasAllKeys) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::CURVE).value();
  EXPECT_THAT(keys.token, SizeIs(kTokenDigits));
  EXPECT_THAT(keys.curve.public_key, SizeIs(40));
  EXPECT_THAT(keys.curve.secret_key, SizeIs(40));
  EXPECT_TRUE(IsTlsIdentityOf(keys.tls, TlsName(keys)));
  EXPECT_FALSE(IsTlsIdentityOf(keys.tls, "localhost"));
  const JobKeys others = MakeJobKeys(SecurityConfig::CURVE).value();
  EXPECT_FALSE(IsTlsIdentityOf({others.tls.certificate, keys.tls.private_key}, TlsName(others)));
}

TEST(MakeJobKeys, AreNeverTheSame) {
  std::set<std::string> tokens, fingerprints;
  for (int i = 0; i < 100; ++i) {
    const JobKeys keys = MakeJobKeys(SecurityConfig::TOKEN).value();
    tokens.insert(keys.token);
    fingerprints.insert(KeysFingerprint(keys));
  }
  EXPECT_THAT(tokens, SizeIs(100));
  EXPECT_THAT(fingerprints, SizeIs(100));
}

TEST(KeysFingerprint, TellsNothingOfTheToken) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::CURVE).value();
  const std::string fingerprint = KeysFingerprint(keys);
  EXPECT_THAT(fingerprint, SizeIs(16));
  EXPECT_EQ(keys.token.find(fingerprint), std::string::npos);
  EXPECT_EQ(TokenFingerprint(SecurityConfig::CURVE, keys.token), fingerprint);
  EXPECT_NE(TokenFingerprint(SecurityConfig::TOKEN, keys.token), fingerprint);
}

TEST(ProofOf, NeedsTheToken) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::TOKEN).value();
  const JobKeys others = MakeJobKeys(SecurityConfig::TOKEN).value();
  EXPECT_EQ(ProofOf(keys, "a"), ProofOf(keys, "a"));
  EXPECT_NE(ProofOf(keys, "a"), ProofOf(keys, "b"));
  EXPECT_NE(ProofOf(keys, "a"), ProofOf(others, "a"));
  EXPECT_EQ(ProofOf(JobKeys(), "a"), KeyProof{});
}

}  // namespace
}  // namespace tug
