#include "store/credentials.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/files.h"
#include "base/text.h"

namespace foreload {
namespace {

constexpr Bytes kLongestFile = 1_MiB;
constexpr std::size_t kLongestValue = 8192;  // session tokens are long
constexpr std::size_t kLongestName = 200;    // of a profile, in messages

using Section = std::map<std::string, std::string, std::less<>>;
using Ini = std::map<std::string, Section, std::less<>>;

// "[profile "my name"]" → profile my name
std::string section_name(std::string_view line) {
  std::string name(trimmed(line.substr(1, std::min(line.find(']'), line.size()) - 1)));
  std::erase(name, '"');
  std::erase(name, '\'');
  return name;
}

// What is indented belongs to the value above it: settings of single services, of which none is used here.
Ini parse_ini(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin files with it
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  Ini ini;
  Section* section = nullptr;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#' || line[0] == ';' || line[0] == ' ' || line[0] == '\t') continue;
    if (line[0] == '[') {
      section = &ini[section_name(line)];
      continue;
    }
    const std::size_t equals = line.find('=');
    if (section == nullptr || equals == std::string_view::npos) continue;
    std::string key(trimmed(line.substr(0, equals)));
    std::transform(key.begin(), key.end(), key.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    (*section)[key] = trimmed(line.substr(equals + 1));
  }
  return ini;
}

// `must_be_readable`: what is there and can not be read is an error.
Result<Ini> read_ini(const std::string& path, bool must_be_readable) {
  if (path.empty()) return Ini();
  const auto text = read_whole_file(path, kLongestFile);
  if (text) return parse_ini(*text);
  if (!must_be_readable || text.error().code == Code::kNotFound) return Ini();
  return text.error();
}

std::string file_path(const Environment& environment, const char* variable, const char* below_home) {
  if (const auto path = environment(variable)) return *path;
  const auto home = environment("HOME");
  return home ? *home + below_home : std::string();
}

const Section* section_of(const Ini& ini, const std::string& name) {
  const auto found = ini.find(name);
  return found == ini.end() ? nullptr : &found->second;
}

std::string value_of(const Section* section, std::string_view key) {
  if (section == nullptr) return {};
  const auto found = section->find(key);
  return found == section->end() ? std::string() : found->second;
}

// These go into the headers of requests.
bool is_header_value(std::string_view text) {
  return text.size() <= kLongestValue &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

Result<Credentials> checked(Credentials found, const std::string& where) {
  if (found.access_key.empty() != found.secret_key.empty()) {
    return Error{Code::kInvalid,
                 fmt::format("{} has only one of access key id and secret access key: both are needed", where)};
  }
  const bool are_plain = is_header_value(found.access_key) && is_header_value(found.secret_key) &&
                         is_header_value(found.session_token) && found.access_key.find('/') == std::string::npos;
  if (are_plain) return found;
  return Error{Code::kInvalid,
               fmt::format("the credentials in {} have characters that no key has: copy them again", where)};
}

Credentials credentials_of(const Environment& environment) {
  return {environment("AWS_ACCESS_KEY_ID").value_or(""), environment("AWS_SECRET_ACCESS_KEY").value_or(""),
          environment("AWS_SESSION_TOKEN").value_or("")};
}

Credentials credentials_of(const Section* section) {
  return {value_of(section, "aws_access_key_id"), value_of(section, "aws_secret_access_key"),
          value_of(section, "aws_session_token")};
}

Status check_profile(const std::string& name, const Section* section) {
  constexpr std::array<std::string_view, 5> kOtherWays{"role_arn", "sso_session", "sso_start_url", "credential_process",
                                                       "web_identity_token_file"};
  for (const std::string_view way : kOtherWays) {
    if (value_of(section, way).empty()) continue;
    return Error{
        Code::kInvalid,
        fmt::format("the profile {} gets its credentials by {}, which is not supported: set AWS_ACCESS_KEY_ID, "
                    "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (`aws configure export-credentials` tells "
                    "them)",
                    name, way)};
  }
  return {};
}

Result<Credentials> find_credentials(const Environment& environment, const std::string& profile,
                                     const Section* in_credentials, const Section* in_config) {
  const Credentials given = credentials_of(environment);
  if (!given.access_key.empty() || !given.secret_key.empty()) return checked(given, "the environment");
  for (const Section* section : {in_credentials, in_config}) {
    const Credentials found = credentials_of(section);
    if (found.access_key.empty() && found.secret_key.empty()) continue;
    return checked(found, "the profile " + profile);
  }
  for (const Section* section : {in_credentials, in_config}) FORELOAD_TRY(check_profile(profile, section));
  return Credentials();
}

// It becomes part of a host's name and of the scope of signatures.
Status check_region(const std::string& region) {
  const bool is_plain = region.size() <= 64 && std::all_of(region.begin(), region.end(), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
                        });
  if (is_plain) return {};
  return Error{Code::kInvalid,
               "the region for S3 (AWS_REGION, AWS_DEFAULT_REGION or the profile's) is none: it has "
               "letters, digits and hyphens only"};
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] != '\0' ? std::optional<std::string>(value) : std::nullopt;
  };
}

Result<S3Access> find_s3_access(const Environment& environment) {
  const bool needs_files = !credentials_of(environment).are_there();
  const std::string credentials_path = file_path(environment, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  FORELOAD_ASSIGN(const Ini credentials, read_ini(credentials_path, needs_files));
  FORELOAD_ASSIGN(const Ini config, read_ini(file_path(environment, "AWS_CONFIG_FILE", "/.aws/config"), needs_files));
  const auto named = environment("AWS_PROFILE");
  const std::string profile = named.value_or("default");
  const Section* const in_credentials = section_of(credentials, profile);
  const Section* in_config = section_of(config, "profile " + profile);
  if (in_config == nullptr && profile == "default") in_config = section_of(config, profile);
  if (named && in_credentials == nullptr && in_config == nullptr) {
    return Error{Code::kInvalid, fmt::format("the profile {} (AWS_PROFILE) is in none of the files for credentials "
                                             "and configuration that can be read",
                                             profile.substr(0, kLongestName))};
  }
  S3Access access;
  FORELOAD_ASSIGN(access.credentials,
                  find_credentials(environment, profile.substr(0, kLongestName), in_credentials, in_config));
  for (const std::string& region : {environment("AWS_REGION").value_or(""),
                                    environment("AWS_DEFAULT_REGION").value_or(""), value_of(in_config, "region")}) {
    if (region.empty()) continue;
    access.region = region;
    break;
  }
  FORELOAD_TRY(check_region(access.region));
  const auto endpoint = environment("AWS_ENDPOINT_URL_S3");
  access.endpoint = endpoint ? *endpoint : environment("AWS_ENDPOINT_URL").value_or("");
  return access;
}

}  // namespace foreload
