#include "accelerator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/clock.h"

namespace foreload {
namespace {

struct Preset {
  const char* name;
  double samples_per_second;
};

// MLPerf Storage: batch / seconds of compute per step; V100: published rates with enough CPU cores.
constexpr std::array kPresets{
    Preset{"resnet50-a100", 400 / 0.435}, Preset{"resnet50-h100", 400 / 0.224},  Preset{"unet3d-a100", 7 / 0.636},
    Preset{"unet3d-h100", 7 / 0.323},     Preset{"cosmoflow-a100", 1 / 0.00551}, Preset{"cosmoflow-h100", 1 / 0.00350},
    Preset{"alexnet-v100", 2509},         Preset{"shufflenet-v100", 2406},       Preset{"resnet18-v100", 1920},
    Preset{"mobilenetv2-v100", 1118},     Preset{"resnet50-v100", 755},
};

constexpr double kLongestStep = 1e18;  // nanoseconds; what is longer does not fit a Duration
constexpr Duration kLongestSleep = std::chrono::milliseconds(50);

}  // namespace

std::string accelerator_presets() {
  std::string names;
  for (const Preset& preset : kPresets) names += (names.empty() ? "" : ", ") + std::string(preset.name);
  return names;
}

std::string accelerator_rates() {
  std::string rates;
  for (const Preset& preset : kPresets) {
    rates += fmt::format("{}{} {:.{}f}", rates.empty() ? "" : ", ", preset.name, preset.samples_per_second,
                         preset.samples_per_second < 100 ? 1 : 0);
  }
  return rates;
}

Result<Accelerator> Accelerator::parse(const std::string& text) {
  if (text.empty() || text == "none") return Accelerator(0);
  for (const Preset& preset : kPresets) {
    if (text == preset.name) return Accelerator(preset.samples_per_second);
  }
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (end == text.c_str() + text.size() && std::isfinite(rate) && rate > 0) return Accelerator(rate);
  return Error{Code::kInvalid,
               fmt::format("the accelerator \"{}\" is unknown: give samples per second, \"none\" or one of {}", text,
                           accelerator_presets())};
}

Duration Accelerator::step(std::uint64_t samples, const std::function<bool()>& stop) const {
  if (!exists()) return Duration{0};
  const double nanoseconds = 1e9 * static_cast<double>(samples) / samples_per_second_;
  const Duration compute(static_cast<std::int64_t>(std::min(nanoseconds, kLongestStep)));
  const Time end = now() + compute;
  for (Time time = now(); time < end && !(stop && stop()); time = now()) {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::min(end, time + kLongestSleep)));
  }
  return compute;
}

}  // namespace foreload
