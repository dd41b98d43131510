# Precompiled headers: reading the same large headers again for every file takes half of a build.
#   foreload_headers(TARGET GROUP)   the first target of a group compiles its headers, the others use them
# Nothing may rely on them: the preset `dev` builds without (CMAKE_DISABLE_PRECOMPILE_HEADERS).
set(FORELOAD_HEADERS_part
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional>
  <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector> <fmt/format.h>)
set(FORELOAD_HEADERS_test ${FORELOAD_HEADERS_part} <fstream> <random> <gtest/gtest.h>)
set(FORELOAD_HEADERS_json_part ${FORELOAD_HEADERS_part} <nlohmann/json.hpp>)
set(FORELOAD_HEADERS_app ${FORELOAD_HEADERS_json_part} <CLI/CLI.hpp>)
set(FORELOAD_HEADERS_bench ${FORELOAD_HEADERS_json_part})

function(foreload_headers target group)
  get_property(first GLOBAL PROPERTY foreload_headers_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${FORELOAD_HEADERS_${group}})
    set_property(GLOBAL PROPERTY foreload_headers_${group} ${target})
  endif()
endfunction()
