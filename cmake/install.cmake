# `cmake --install`: the library, its public headers, the command, and what find_package(foreload) reads.
install(TARGETS foreload EXPORT foreloadTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/foreload DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(FORELOAD_APPS)
  install(TARGETS foreload_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET foreload_agent)
    install(TARGETS foreload_agent RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()

set(FORELOAD_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/foreload)
configure_package_config_file(cmake/foreloadConfig.cmake.in foreloadConfig.cmake INSTALL_DESTINATION ${FORELOAD_CMAKE_DIR})
# Before 1.0 a minor release may change the interface.
write_basic_package_version_file(foreloadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/foreloadConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/foreloadConfigVersion.cmake
  DESTINATION ${FORELOAD_CMAKE_DIR})
install(EXPORT foreloadTargets NAMESPACE foreload:: DESTINATION ${FORELOAD_CMAKE_DIR})
