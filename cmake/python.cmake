# The Python package. Built when pybind11 and the headers of Debian's Python are there; the library never needs them.
#   FORELOAD_PYTHON             OFF leaves it out
#   FORELOAD_PYTHON_EXECUTABLE  for which interpreter (default: Debian's, whatever else stands first in PATH)
set(FORELOAD_PYTHON_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "The interpreter that the Python package is built for")
set(Python_EXECUTABLE ${FORELOAD_PYTHON_EXECUTABLE})
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
find_package(pybind11 2.10 CONFIG QUIET)
if(Python_FOUND AND pybind11_FOUND AND NOT FORELOAD_SANITIZE)
  set(FORELOAD_PYTHON_DEFAULT ON)
else()
  set(FORELOAD_PYTHON_DEFAULT OFF)
endif()
option(FORELOAD_PYTHON "Build the Python package" ${FORELOAD_PYTHON_DEFAULT})
if(NOT FORELOAD_PYTHON)
  return()
endif()
if(NOT FORELOAD_PYTHON_DEFAULT)
  message(STATUS "no Python package: it needs pybind11-dev, python3-dev and a build without sanitizers")
  return()
endif()

# All parts are inside the module, so that the package is one file beside its *.py and needs no library path.
pybind11_add_module(_foreload MODULE NO_EXTRAS
  python/src/array.cc python/src/errors.cc python/src/lease.cc python/src/loader_object.cc python/src/loader_report.cc
  python/src/module.cc python/src/options.cc python/src/plan_object.cc python/src/watch.cc)
foreach(part IN LISTS FORELOAD_PARTS)
  target_link_libraries(_foreload PRIVATE foreload_${part})
  if(part STREQUAL loader)
    break()
  endif()
endforeach()
target_link_libraries(_foreload PRIVATE ${FORELOAD_LIBRARIES})
target_compile_definitions(_foreload PRIVATE FORELOAD_VERSION="${PROJECT_VERSION}")
# Only the module's entry is visible: another copy of the library in the process must not mix with this one.
file(WRITE ${CMAKE_BINARY_DIR}/python/visible.map "{ global: PyInit__foreload; local: *; };\n")
target_link_options(_foreload PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/python/visible.map)
set_target_properties(_foreload PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/foreload)

# ${CMAKE_BINARY_DIR}/python is importable: the sources are linked beside the module.
set(FORELOAD_PYTHON_FILES
  __init__.py _arguments.py _delivery.py _foreload.pyi _mapped.py _memory.py _opening.py _peers.py _ranks.py _report.py _settings.py _step.py _tensors.py
  _torchvision.py errors.py loader.py py.typed transforms.py)
foreach(name IN LISTS FORELOAD_PYTHON_FILES)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/foreload)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/python/foreload/${name} ${CMAKE_BINARY_DIR}/python/foreload/${name} SYMBOLIC)
endforeach()

# `cmake --install BUILD --component python`, or `make install-python`. Debian's interpreter looks into dist-packages.
execute_process(COMMAND ${Python_EXECUTABLE} -c
  "import sys; print('dist-packages' if any(p.endswith('dist-packages') for p in sys.path) else 'site-packages')"
  OUTPUT_VARIABLE FORELOAD_PYTHON_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE)
set(FORELOAD_PYTHON_DIR lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/${FORELOAD_PYTHON_PACKAGES}/foreload)
install(TARGETS _foreload LIBRARY DESTINATION ${FORELOAD_PYTHON_DIR} COMPONENT python EXCLUDE_FROM_ALL)
list(TRANSFORM FORELOAD_PYTHON_FILES PREPEND python/foreload/)
install(FILES ${FORELOAD_PYTHON_FILES} DESTINATION ${FORELOAD_PYTHON_DIR} COMPONENT python EXCLUDE_FROM_ALL)

if(FORELOAD_BENCHMARKS AND FORELOAD_APPS)
  # bench/peers compare with other loaders in Python: this is how `make bench` starts them.
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bench/peers_torch
    CONTENT "#!/bin/sh
PYTHONPATH='${CMAKE_BINARY_DIR}/python' FORELOAD_CLI='$<TARGET_FILE:foreload_cli>' exec '${Python_EXECUTABLE}' \
  -B '${CMAKE_CURRENT_SOURCE_DIR}/bench/peers/torch_dataloader.py' \"$@\"
"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  add_dependencies(benchmarks _foreload foreload_cli)
endif()

if(NOT FORELOAD_TESTS OR NOT FORELOAD_APPS)
  return()
endif()
# pytest over the built package; with FORELOAD_SOAK=1 in full length.
add_test(NAME python
  COMMAND ${Python_EXECUTABLE} -B -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/python/tests)
set_tests_properties(python PROPERTIES LABELS python TIMEOUT 900 RUN_SERIAL ON ENVIRONMENT
  "PYTHONPATH=${CMAKE_BINARY_DIR}/python;FORELOAD_CLI=$<TARGET_FILE:foreload_cli>")
