// Real connections over loopback: what somebody may send, in which pieces, and what it may leave out.
#include "serve/metrics_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/clock.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = 30s;  // a hang is a failure, not a hang

class Client {
 public:
  Client() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Client(const ListenAddress& address) : Client() { connect(address); }
  void connect(const ListenAddress& address) const {
    sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(address.port()), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end_sending() const { ::shutdown(socket_.get(), SHUT_WR); }
  // Everything up to the end of the connection. A reset ends it, too.
  std::string read() const {
    std::string all;
    const Time until = now() + kLong;
    while (now() < until) {
      pollfd polled{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&polled, 1, 1000) <= 0) continue;
      char buffer[4096];
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(got));
    }
    ADD_FAILURE() << "the connection does not end";
    return all;
  }

 private:
  Descriptor socket_;
};

class MetricsServerTest : public testing::Test {
 protected:
  void start(const MetricsServerOptions& options = {}, const std::string& text = "a 1\n") {
    auto server = MetricsServer::start(
        *ListenAddress::parse("0"), [this, text] { return gone_ ? std::nullopt : std::optional(text); }, options);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(*server);
  }
  std::string ask(std::string_view request) const {
    const Client client(server_->address());
    (void)client.send(request);
    return client.read();
  }
  bool is_well() const { return ask("GET /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"); }

  std::atomic<bool> gone_{false};
  std::unique_ptr<MetricsServer> server_;
};

std::string status(const std::string& answer) {
  return answer.substr(0, answer.find('\r'));
}

TEST_F(MetricsServerTest, MetricsAndHealthAreAnswered) {
  start();
  const std::string answer = ask("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
  EXPECT_EQ(status(answer), "HTTP/1.1 200 OK");
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\na 1\n")) << answer;
  EXPECT_TRUE(is_well());
}

TEST_F(MetricsServerTest, OtherPathsAndMethodsAreRefused) {
  start();
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n\r\n")), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status(ask("DELETE /metrics HTTP/1.1\r\n\r\n")), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(status(ask("nonsense\r\n\r\n")), "HTTP/1.1 400 Bad Request");
}

TEST_F(MetricsServerTest, AHostThatHasEndedIsUnavailable) {
  start();
  gone_ = true;
  EXPECT_EQ(status(ask("GET /metrics HTTP/1.1\r\n\r\n")), "HTTP/1.1 503 Service Unavailable");
  EXPECT_TRUE(is_well());
}

TEST_F(MetricsServerTest, ARequestMayComeByteByByte) {
  start();
  const Client client(server_->address());
  for (const char c : std::string_view("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")) ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_EQ(status(client.read()), "HTTP/1.1 200 OK");
}

TEST_F(MetricsServerTest, ARequestThatIsCutOffEndsTheConnection) {
  start();
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Client client(server_->address());
    ASSERT_TRUE(client.send(whole.substr(0, length)));
    client.end_sending();
    EXPECT_EQ(client.read(), "") << length;
  }
  EXPECT_TRUE(is_well());
}

TEST_F(MetricsServerTest, WhoClosesItsSideAfterTheRequestIsAnswered) {
  start();
  const Client client(server_->address());
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.0\r\n\r\n"));
  client.end_sending();
  EXPECT_EQ(status(client.read()), "HTTP/1.1 200 OK");
}

TEST_F(MetricsServerTest, AHeadThatIsTooLongIsRefusedBeforeItEnds) {
  start();
  const std::string line = "GET /metrics HTTP/1.1\r\nX: ";
  EXPECT_EQ(status(ask(line + std::string(8_KiB - line.size() - 4, 'x') + "\r\n\r\n")), "HTTP/1.1 200 OK");
  EXPECT_EQ(status(ask(line + std::string(8_KiB - line.size() - 3, 'x') + "\r\n\r\n")),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(status(ask(std::string(8_KiB, 'x'))), "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_TRUE(is_well());
}

// A connection that were closed while the other side still sends could take the answer away.
TEST_F(MetricsServerTest, ABodyThatNobodyAskedForIsTakenAndIgnored) {
  start({.patience = kLong});
  const Client client(server_->address());
  EXPECT_TRUE(client.send("GET /metrics HTTP/1.1\r\nContent-Length: 16000000\r\n\r\n" + std::string(16'000'000, 'x')));
  client.end_sending();
  EXPECT_EQ(status(client.read()), "HTTP/1.1 200 OK");
  EXPECT_EQ(status(ask("GET /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n")), "HTTP/1.1 200 OK");
}

TEST_F(MetricsServerTest, WhoSaysNothingIsShownTheDoor) {
  start({.patience = 50ms});
  const Client silent(server_->address());
  EXPECT_EQ(silent.read(), "");
  const Client halfway(server_->address());
  ASSERT_TRUE(halfway.send("GET /metrics"));
  EXPECT_EQ(halfway.read(), "");
}

TEST_F(MetricsServerTest, WhoDoesNotReadIsShownTheDoor) {
  start({.connections = 1, .patience = 200ms}, std::string(64'000'000, 'x'));  // more than sockets hold
  const Client deaf(server_->address());
  ASSERT_TRUE(deaf.send("GET /metrics HTTP/1.1\r\n\r\n"));
  const Time until = now() + kLong;  // it is the turn of the next only when the first is gone
  bool well = false;
  while (!well && now() < until) well = is_well();
  EXPECT_TRUE(well);
}

TEST_F(MetricsServerTest, SilentOnesDoNotKeepOthersOut) {
  start({.connections = 4, .patience = 100ms});
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Client>(server_->address()));
  const Client last(server_->address());
  ASSERT_TRUE(last.send("GET /healthz HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(status(last.read()), "HTTP/1.1 200 OK");
}

TEST_F(MetricsServerTest, AnyBytesAreSurvived) {
  start({.patience = 1s});
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random() % 10'000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const Client client(server_->address());
    (void)client.send(bytes);
    client.end_sending();
    if (round % 2 == 0) (void)client.read();  // the others leave without having read
  }
  EXPECT_TRUE(is_well());
}

double cpu_seconds() {
  rusage used{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &used), 0);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

TEST_F(MetricsServerTest, WithoutDescriptorsItWaitsAndDoesNotSpin) {
  start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  const Client client;  // has its socket; the server's side of the connection can not be had
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  client.connect(server_->address());
  EXPECT_TRUE(client.send("GET /healthz HTTP/1.1\r\n\r\n"));
  const double busy = cpu_seconds();
  ::usleep(500'000);
  EXPECT_LT(cpu_seconds() - busy, 0.1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status(client.read()), "HTTP/1.1 200 OK");
}

TEST_F(MetricsServerTest, ItEndsWhileSomebodyIsConnected) {
  start();
  const Client client(server_->address());
  ASSERT_TRUE(client.send("GET /met"));
  server_.reset();
  EXPECT_EQ(client.read(), "");
}

TEST(MetricsServerAddressTest, ItListensAtIpv6Too) {
  auto server =
      MetricsServer::start(*ListenAddress::parse("[::1]:0"), [] { return std::optional<std::string>("a 1\n"); });
  if (!server.ok()) GTEST_SKIP() << server.error().message;
  Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 to{
      .sin6_family = AF_INET6, .sin6_port = htons((*server)->address().port()), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const std::string_view request = "GET /healthz HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  char answer[512] = {};
  ASSERT_GT(::recv(socket.get(), answer, sizeof(answer) - 1, 0), 0);
  EXPECT_EQ(status(answer), "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace foreload
