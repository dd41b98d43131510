# Pixels against Pillow and djpeg. prep_tool runs parts of prep from the command line.
add_executable(prep_tool tests/prep_tool.cc)
foreach(part IN ITEMS base plan policy source tier prep)
  target_link_libraries(prep_tool PRIVATE foreload_${part})
endforeach()
target_link_libraries(prep_tool PRIVATE ${FORELOAD_LIBRARIES})
find_program(FORELOAD_PILLOW_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(FORELOAD_PILLOW_PYTHON)
  add_test(NAME pixels
    COMMAND ${FORELOAD_PILLOW_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tests/pixels.py $<TARGET_FILE:prep_tool>)
  set_tests_properties(pixels PROPERTIES LABELS parity TIMEOUT 300 SKIP_RETURN_CODE 77)
else()
  message(STATUS "no /usr/bin/python3: the test 'pixels' is left out")
endif()
