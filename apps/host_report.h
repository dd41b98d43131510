// A survey of a host for people, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "host/survey.h"

namespace foreload {

std::vector<std::string> host_lines(const HostSurvey& survey);  // at most 80 columns each
Json host_json(const HostSurvey& survey);

}  // namespace foreload
