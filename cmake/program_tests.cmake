# Tests of whole programs. They judge what is built, so a sanitizer build without the command has none of them.
if(NOT FORELOAD_APPS)
  return()
endif()
# Debian's interpreter, whatever else stands first in PATH.
find_program(FORELOAD_INTERPRETER python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

add_test(NAME cli COMMAND ${FORELOAD_INTERPRETER} ${CMAKE_CURRENT_SOURCE_DIR}/tests/cli/cli_test.py $<TARGET_FILE:foreload_cli>)
set_tests_properties(cli PROPERTIES LABELS cli TIMEOUT 300)
add_test(NAME install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/run ${CMAKE_CURRENT_BINARY_DIR})
set_tests_properties(install PROPERTIES LABELS install TIMEOUT 300)
add_test(NAME check_finds_violations COMMAND ${FORELOAD_INTERPRETER} ${CMAKE_CURRENT_SOURCE_DIR}/tests/check/check_test.py)
add_test(NAME readme_table COMMAND ${FORELOAD_INTERPRETER} ${CMAKE_CURRENT_SOURCE_DIR}/tests/check/readme_table_test.py)
set_tests_properties(check_finds_violations readme_table PROPERTIES LABELS check)

# tests/NAME_test.py judge the command from outside; with FORELOAD_SOAK=1 in full length. One that measures rates, or has hosts with deadlines, runs alone.
foreach(name analyze cluster cluster_disk cluster_net hashes kill signals bad_input paths memory storage convert disk object_store order remote host host_limits host_life metrics doctor recorded_runs simulate)
  add_test(NAME ${name} COMMAND ${FORELOAD_INTERPRETER} -B ${CMAKE_CURRENT_SOURCE_DIR}/tests/${name}_test.py $<TARGET_FILE:foreload_cli>)
  set_tests_properties(${name} PROPERTIES LABELS program)
endforeach()
set_tests_properties(analyze storage cluster cluster_disk cluster_net PROPERTIES RUN_SERIAL ON)

# Signatures against botocore's.
add_executable(sign_tool tests/sign_tool.cc)
foreach(part IN ITEMS base plan policy store)
  target_link_libraries(sign_tool PRIVATE foreload_${part})
endforeach()
target_link_libraries(sign_tool PRIVATE ${FORELOAD_LIBRARIES})
add_test(NAME signing COMMAND ${FORELOAD_INTERPRETER} -B ${CMAKE_CURRENT_SOURCE_DIR}/tests/signing_test.py $<TARGET_FILE:sign_tool>)
set_tests_properties(signing PROPERTIES LABELS parity SKIP_RETURN_CODE 77)

# The page of an analysis, as a browser shows it.
add_executable(report_tool tests/report_tool.cc apps/analysis_curves.cc apps/analysis_page.cc apps/analysis_remedies.cc
  apps/analysis_tables.cc apps/json_node.cc)
target_link_libraries(report_tool PRIVATE foreload_base foreload_report ${FORELOAD_LIBRARIES} CLI11::CLI11)
target_compile_options(report_tool PRIVATE -O1)
add_test(NAME report COMMAND ${FORELOAD_INTERPRETER} -B ${CMAKE_CURRENT_SOURCE_DIR}/tests/report_test.py
  $<TARGET_FILE:report_tool> $<TARGET_FILE:foreload_cli>)
set_tests_properties(report PROPERTIES LABELS program TIMEOUT 900 SKIP_RETURN_CODE 77)
