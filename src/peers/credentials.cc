#include "peers/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/write_file.h"

namespace foreload {
namespace {

constexpr Bytes kLongestFile = 64_KiB;
constexpr const char* kAgain =
    "make new credentials for the job (foreload agent --make-credentials) on one host and "
    "copy them to all";

template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;

// What OpenSSL has to say about its last failure.
Error library_error(std::string_view what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return {Code::kIo, fmt::format("cannot {}: {}", what, text.data())};
}

struct Pair {
  Key key;
  Certificate certificate;
};

// What is written into a certificate.
struct Subject {
  std::string name;
  std::array<std::pair<int, const char*>, 5> extensions;  // the text is nullptr: there are no more
};

Status add_extensions(X509* certificate, X509* issuer, const Subject& subject) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [kind, text] : subject.extensions) {
    if (text == nullptr) break;
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, text));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return library_error("describe a certificate");
    }
  }
  return {};
}

// Numbers, names and dates.
bool describe(X509* certificate, const std::string& name, const CredentialTerms& terms) {
  std::array<unsigned char, 16> serial{};
  if (RAND_bytes(serial.data(), serial.size()) != 1) return false;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x3f) | 0x40);  // positive, and of full length
  ASN1_INTEGER* number = X509_get_serialNumber(certificate);
  X509_NAME* subject = X509_get_subject_name(certificate);
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_STRING_set(number, serial.data(), static_cast<int>(serial.size())) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -terms.age.count()) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), terms.valid.count()) != nullptr &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()),
                                    -1, -1, 0) == 1;
}

// `issuer`: nullptr: itself.
Result<Pair> new_pair(const Subject& subject, const CredentialTerms& terms, const Pair* issuer) {
  Pair pair{Key(EVP_EC_gen("P-256")), Certificate(X509_new())};
  if (!pair.key || !pair.certificate) return library_error("make a key");
  const Pair& by = issuer != nullptr ? *issuer : pair;
  if (!describe(pair.certificate.get(), subject.name, terms) ||
      X509_set_issuer_name(pair.certificate.get(), X509_get_subject_name(by.certificate.get())) != 1 ||
      X509_set_pubkey(pair.certificate.get(), pair.key.get()) != 1) {
    return library_error("make a certificate");
  }
  FORELOAD_TRY(add_extensions(pair.certificate.get(), by.certificate.get(), subject));
  if (X509_sign(pair.certificate.get(), by.key.get(), EVP_sha256()) == 0) return library_error("sign a certificate");
  return pair;
}

std::string content_of(BIO* memory) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<std::size_t>(length));
}

Result<std::string> text_of(X509* certificate) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_X509(memory.get(), certificate) != 1) return library_error("write a certificate");
  return content_of(memory.get());
}

Result<std::string> text_of(EVP_PKEY* key) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return library_error("write a key");
  }
  return content_of(memory.get());
}

std::string date_of(const ASN1_TIME* time) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (!memory || ASN1_TIME_print(memory.get(), time) != 1) return "an unreadable date";
  return content_of(memory.get());
}

// A key with a passphrase is not asked for one.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Memory memory_over(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<Certificate> parse_certificate(const std::string& text, const std::string& file) {
  const Memory memory = memory_over(text);
  Certificate certificate(PEM_read_bio_X509(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (certificate) return certificate;
  return Error{Code::kInvalid, fmt::format("{} is no certificate (PEM); {}", file, kAgain)};
}

Result<Key> parse_key(const std::string& text, const std::string& file) {
  const Memory memory = memory_over(text);
  Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (key) return key;
  return Error{Code::kInvalid, fmt::format("{} is no private key (PEM, without passphrase); {}", file, kAgain)};
}

Status check_dates(X509* certificate, const std::string& file) {
  const ASN1_TIME* begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(begin) > 0) {
    return Error{Code::kInvalid,
                 fmt::format("{} is not valid before {}: set this host's clock right", file, date_of(begin))};
  }
  if (X509_cmp_current_time(end) > 0) return {};
  return Error{Code::kInvalid, fmt::format("{} has expired on {}; {}", file, date_of(end), kAgain)};
}

bool is_signed_by(X509* certificate, X509* ca) {
  const Store store(X509_STORE_new());
  const Verification check(X509_STORE_CTX_new());
  const bool ready = store && check && X509_STORE_add_cert(store.get(), ca) == 1 &&
                     X509_STORE_CTX_init(check.get(), store.get(), certificate, nullptr) == 1;
  if (ready) X509_STORE_CTX_set_flags(check.get(), X509_V_FLAG_NO_CHECK_TIME);
  const bool yes = ready && X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  return yes;
}

// The key, which must be nobody else's: what is checked is what is read.
Result<std::string> read_key(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return errno_error("cannot open " + path, errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return errno_error("cannot look at " + path, errno);
  if (!S_ISREG(found.st_mode)) return Error{Code::kInvalid, path + " is no file"};
  if ((found.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return Error{Code::kInvalid, fmt::format("{} is the job's private key and open to others (mode {:o}): run "
                                             "chmod 600 {}, and make new credentials if others may have read it",
                                             path, found.st_mode & 0777, path)};
  }
  if (found.st_size < 0 || static_cast<Bytes>(found.st_size) > kLongestFile) {
    return Error{Code::kInvalid, path + " is too long for a private key"};
  }
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  FORELOAD_TRY(read_exactly(file.get(), 0, std::as_writable_bytes(std::span(text))));
  return text;
}

Status write_new_file(const std::string& path, const std::string& content, mode_t mode) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file.valid() && errno == EEXIST) {
    return Error{Code::kInvalid, fmt::format("{} is there already, and credentials are never overwritten: name another "
                                             "folder, or remove them",
                                             path)};
  }
  if (!file.valid()) return errno_error("cannot create " + path, errno);
  const Status written = write_all(file.get(), std::as_bytes(std::span(content)), path);
  if (!written.ok()) ::unlink(path.c_str());
  return written;
}

}  // namespace

Result<std::vector<PeerCredentials>> new_credentials(std::span<const CredentialTerms> terms) {
  std::uint64_t number = 0;  // so that certificates of different jobs can be told apart by people
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number)) != 1) return library_error("be random");
  const Subject authority{.name = "foreload job " + hex16(number),
                          .extensions = {{{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                          {NID_key_usage, "critical,keyCertSign"},
                                          {NID_subject_key_identifier, "hash"}}}};
  FORELOAD_ASSIGN(const Pair ca, new_pair(authority, {}, nullptr));
  std::vector<PeerCredentials> all;
  for (const CredentialTerms& each : terms) {
    const std::string names = "DNS:" + each.name;
    const Subject agent{.name = each.name,
                        .extensions = {{{NID_basic_constraints, "critical,CA:FALSE"},
                                        {NID_key_usage, "critical,digitalSignature"},
                                        {NID_ext_key_usage, "serverAuth,clientAuth"},
                                        {NID_subject_alt_name, names.c_str()},
                                        {NID_authority_key_identifier, "keyid:always"}}}};
    FORELOAD_ASSIGN(const Pair own, new_pair(agent, each, &ca));
    PeerCredentials& made = all.emplace_back();
    FORELOAD_ASSIGN(made.ca, text_of(ca.certificate.get()));
    FORELOAD_ASSIGN(made.certificate, text_of(own.certificate.get()));
    FORELOAD_ASSIGN(made.key, text_of(own.key.get()));
  }
  return all;
}

Status make_credentials(const std::string& folder) {
  const CredentialTerms terms;
  FORELOAD_ASSIGN(const auto all, new_credentials(std::span(&terms, 1)));
  const PeerCredentials& made = all.front();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_error("cannot create " + folder, errno);
  // The key comes first: files that are there from before are found before anything is written.
  const std::string key = folder + "/agent.key";
  const std::string certificate = folder + "/agent.pem";
  FORELOAD_TRY(write_new_file(key, made.key, 0600));
  Status status = write_new_file(certificate, made.certificate, 0644);
  if (status.ok()) {
    status = write_new_file(folder + "/ca.pem", made.ca, 0644);
    if (!status.ok()) ::unlink(certificate.c_str());
  }
  if (!status.ok()) ::unlink(key.c_str());
  return status;
}

Result<PeerCredentials> load_credentials(const std::string& folder) {
  const std::string ca_file = folder + "/ca.pem";
  const std::string certificate_file = folder + "/agent.pem";
  const std::string key_file = folder + "/agent.key";
  PeerCredentials read;
  FORELOAD_ASSIGN(read.ca, read_whole_file(ca_file, kLongestFile));
  FORELOAD_ASSIGN(read.certificate, read_whole_file(certificate_file, kLongestFile));
  FORELOAD_ASSIGN(read.key, read_key(key_file));
  FORELOAD_ASSIGN(const Certificate ca, parse_certificate(read.ca, ca_file));
  FORELOAD_ASSIGN(const Certificate certificate, parse_certificate(read.certificate, certificate_file));
  FORELOAD_ASSIGN(const Key key, parse_key(read.key, key_file));
  if (!is_signed_by(certificate.get(), ca.get())) {
    return Error{Code::kInvalid, fmt::format("{} was not signed by {}: they are of different jobs; {}",
                                             certificate_file, ca_file, kAgain)};
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalid, fmt::format("{} is not the key of {}; {}", key_file, certificate_file, kAgain)};
  }
  if (X509_check_host(certificate.get(), kPeerCertificateName, 0, 0, nullptr) != 1) {
    return Error{Code::kInvalid,
                 fmt::format("{} is not for \"{}\"; {}", certificate_file, kPeerCertificateName, kAgain)};
  }
  FORELOAD_TRY(check_dates(ca.get(), ca_file));
  FORELOAD_TRY(check_dates(certificate.get(), certificate_file));
  return read;
}

}  // namespace foreload
