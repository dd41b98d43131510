// Both sides talk over a pair of sockets that is the child's standard input and output: first the samples, then lines
// of JSON. When our end is closed, the child reads the end of its input and leaves.
#include "probe/python_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"

extern char** environ;

namespace foreload {

namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestAnswer = 300s;
constexpr Duration kLongestLeave = 5s;
constexpr std::size_t kLongestLine = 4096;

constexpr const char* kScript = R"(
import io, json, os, sys, time
lengths = json.loads(sys.stdin.buffer.readline())
samples = [sys.stdin.buffer.read(length) for length in lengths]
versions = {"pillow": "", "torchvision": ""}
try:
    import PIL
    from PIL import Image
    versions["pillow"] = PIL.__version__
    import torch, torchvision
    from torchvision import transforms
    from torchvision.transforms import functional
    torch.set_num_threads(1)
    versions["torchvision"] = torchvision.__version__
except Exception:
    pass
print(json.dumps(versions), flush=True)

def resize(boxes, side):
    sizes = [(w, h) for x, y, w, h in boxes]
    noise = os.urandom(3 * max(w * h for w, h in sizes))
    pictures = [Image.frombytes("RGB", (w, h), noise[:3 * w * h]) for w, h in sizes]
    start = time.process_time()
    for picture in pictures:
        picture.resize((side, side), Image.BILINEAR)
    return time.process_time() - start

# The usual pipeline, drawing its own random numbers; then the crop is the one that everybody makes.
def pipeline(side):
    class Crop(transforms.RandomResizedCrop):
        box = None
        def forward(self, picture):
            self.get_params(picture, self.scale, self.ratio)
            x, y, w, h = self.box
            return functional.resized_crop(picture, y, x, h, w, self.size, self.interpolation)
    crop = Crop(side)
    normalize = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    return crop, transforms.Compose([crop, transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize])

def prepare(boxes, side):
    crop, compose = pipeline(side)
    start = time.process_time()
    for sample, crop.box in zip(samples, boxes):
        compose(Image.open(io.BytesIO(sample)).convert("RGB"))
    return time.process_time() - start

for line in sys.stdin.buffer:
    task = json.loads(line)
    print(json.dumps({"resize": resize, "prepare": prepare}[task["task"]](task["boxes"], task["side"])), flush=True)
)";

Result<pid_t> spawn(const std::string& interpreter, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, 0);
  posix_spawn_file_actions_adddup2(&actions, socket, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string program = interpreter, flag = "-c", script = kScript;
  char* arguments[] = {program.data(), flag.data(), script.data(), nullptr};
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errno_error("cannot start " + interpreter, failed);
  return child;
}

}  // namespace

Result<PythonPeer> PythonPeer::start(const std::string& interpreter, std::span<const std::vector<std::byte>> samples) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("cannot make sockets", errno);
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  FORELOAD_ASSIGN(const pid_t child, spawn(interpreter, theirs.get()));
  PythonPeer peer(child, std::move(ours));
  nlohmann::json lengths = nlohmann::json::array();
  for (const auto& sample : samples) lengths.push_back(sample.size());
  const std::string header = lengths.dump() + "\n";
  FORELOAD_TRY(peer.send(std::as_bytes(std::span(header))));
  for (const auto& sample : samples) FORELOAD_TRY(peer.send(sample));
  FORELOAD_ASSIGN(const std::string line, peer.receive_line());
  const auto versions = nlohmann::json::parse(line, nullptr, false);
  if (!versions.is_object()) return Error{Code::kIo, fmt::format("{} answers what was not asked", interpreter)};
  peer.pillow_ = versions.value("pillow", "");
  peer.torchvision_ = versions.value("torchvision", "");
  return peer;
}

PythonPeer::PythonPeer(PythonPeer&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      socket_(std::move(other.socket_)),
      received_(std::move(other.received_)),
      pillow_(std::move(other.pillow_)),
      torchvision_(std::move(other.torchvision_)) {}

PythonPeer::~PythonPeer() {
  if (child_ < 0) return;
  socket_ = Descriptor();
  const Time deadline = now() + kLongestLeave;
  while (::waitpid(child_, nullptr, WNOHANG) == 0) {
    if (now() > deadline) ::kill(child_, SIGKILL);
    std::this_thread::sleep_for(2ms);
  }
}

Status PythonPeer::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno_error("the Python process does not listen", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string> PythonPeer::receive_line() {
  const Time deadline = now() + kLongestAnswer;
  for (std::size_t end; now() < deadline;) {
    if (end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, 1000) <= 0) continue;
    char text[256];
    const ssize_t got = ::recv(socket_.get(), text, sizeof text, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || received_.size() > kLongestLine) return Error{Code::kIo, "the Python process ended"};
    received_.append(text, static_cast<std::size_t>(got));
  }
  return Error{Code::kIo, "the Python process does not answer"};
}

Result<double> PythonPeer::ask(const char* task, std::span<const Box> boxes, unsigned side) {
  nlohmann::json numbers = nlohmann::json::array();
  for (const Box& box : boxes) numbers.push_back({box.x, box.y, box.width, box.height});
  const std::string line = nlohmann::json{{"task", task}, {"boxes", numbers}, {"side", side}}.dump() + "\n";
  FORELOAD_TRY(send(std::as_bytes(std::span(line))));
  FORELOAD_ASSIGN(const std::string answer, receive_line());
  const auto seconds = nlohmann::json::parse(answer, nullptr, false);
  if (!seconds.is_number()) return Error{Code::kIo, fmt::format("Python answers \"{}\" to {}", answer, task)};
  return seconds.get<double>();
}

Result<double> PythonPeer::resize(std::span<const Box> boxes, unsigned side) {
  return ask("resize", boxes, side);
}

Result<double> PythonPeer::prepare(std::span<const Box> boxes, unsigned side) {
  return ask("prepare", boxes, side);
}

}  // namespace foreload
