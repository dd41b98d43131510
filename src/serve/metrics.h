// Metrics: a survey of a host as Prometheus reads it (text format 0.0.4). A learner is named by its stream, whose
// number no other stream of the host has while it lives; what its counters say only grows. Other members are not
// trusted: whatever they wrote, the text is well formed, and no series stands in it twice.
#pragma once

#include <string>

#include "host/survey.h"

namespace foreload {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const HostSurvey& survey);

}  // namespace foreload
