// PeerCredentials: what the agents of one job show each other, and believe. Every job has a certificate authority of
// its own, whose key is thrown away once it has signed the one certificate that all agents of the job use. So whoever
// has these files is a peer, and nobody else can become one.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"

namespace foreload {

// The name in every agent's certificate. Peers are checked for it, not for their host names: those need no DNS, and may
// change.
inline constexpr const char* kPeerCertificateName = "foreload-peer";

struct PeerCredentials {
  std::string ca{};           // PEM, as the rest
  std::string certificate{};  // signed by it
  std::string key{};          // of the certificate
};

// Of an agent's certificate.
struct CredentialTerms {
  std::chrono::seconds age = std::chrono::hours(1);  // valid since then: clocks of hosts differ
  std::chrono::seconds valid = std::chrono::hours(24 * 30);
  std::string name = kPeerCertificateName;
};

// A new authority, and what it signs: one certificate for each of the terms. In memory.
Result<std::vector<PeerCredentials>> new_credentials(std::span<const CredentialTerms> terms);
// New ones as files: ca.pem, agent.pem, and agent.key for the owner only. The folder is made if there is none, for the
// owner only. What is there already is never overwritten: kInvalid.
Status make_credentials(const std::string& folder);
// Reads these files. Refused, with what to do: a key that others may read; anything that has expired, is not valid yet,
// or does not belong together.
Result<PeerCredentials> load_credentials(const std::string& folder);

}  // namespace foreload
