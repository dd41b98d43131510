// Windows: a figure is the median of repeated short measurements, and how sure it is follows from their order alone:
// nothing is assumed about how they are distributed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "lab/measured.h"
#include "probe/analysis.h"

namespace foreload {

inline constexpr unsigned kLeastWindows = 3;  // fewer say nothing

// The median of the values, and between which of them it lies with 95 % confidence. With fewer than six no two values
// do that: their range, widened by itself on both sides. Below kLeastWindows: not known.
Figure figure_of(std::vector<double> windows);

// What is left of the time and bytes that an analysis may use, and whether it is to end.
class Allowance {
 public:
  explicit Allowance(const MeasureOptions& how);

  const MeasureOptions& how() const { return how_; }
  Status go_on() const;  // kCancelled: asked to stop
  // When a part that may take this share of the whole time has to end, if it begins now.
  Time deadline(double share) const;
  double used() const;  // share of the time
  // That share of all bytes, or what is left.
  Bytes bytes(double share) const;
  void spend(Bytes bytes) { spent_ += bytes; }
  Bytes spent() const { return spent_; }
  void tell(const std::string& stage, double share) const;  // progress

 private:
  MeasureOptions how_;
  Time start_;
  Bytes spent_ = 0;
};

// Why there are too few windows, when nothing else is wrong.
Error no_time_left();

struct WindowRule {
  unsigned least = 7;
  unsigned most = 31;
  double sure = 0.04;  // of the median: when its interval is as narrow, there are enough windows
};

// Repeats `window` until the median is sure, there is no other (it returns nothing), or the deadline has passed; then
// what there is.
using Window = std::function<Result<std::optional<double>>()>;
Result<Figure> repeat_windows(const Allowance& allowance, Time deadline, const Window& window,
                              const WindowRule& rule = {});

}  // namespace foreload
