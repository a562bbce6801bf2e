# Debian packages by CPack: cmake --preset package && cmake --build --preset package --target package
#
#   psd              the daemon, its units and configuration, and psctl, which talks to the admin socket
#                    of a psd on the same host and is of no use elsewhere
#   dtworker         the training command and its unit
#   libdtworker1     the shared library
#   libdtworker-dev  header, link, pkg-config and CMake files, examples, manual pages
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME psd)
set(CPACK_PACKAGE_CONTACT "psd developers <psd@example.org>" CACHE STRING "Maintainer of the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_COMPONENTS_ALL psd dtworker libdtworker1 libdtworker-dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_SET_DESTDIR ON) # /etc is not below the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/debian/tidy.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(control ${CMAKE_CURRENT_SOURCE_DIR}/debian)

function(psd_describe component section short)
  string(TOUPPER ${component} name)
  string(REPLACE ";" "\n" long "${ARGN}")
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_COMPONENT_${name}_DESCRIPTION "${short}\n${long}" PARENT_SCOPE)
endfunction()

psd_describe(psd science "parameter server for data-parallel training"
  "psd is a daemon. It holds the variables of training jobs, takes gradients from"
  "workers, applies optimizer updates and hands out fresh values. psctl shows who"
  "is there and who waits for whom.")
psd_describe(dtworker science "distributed training worker"
  "dtworker reads data, computes gradients on the CPUs and trains through a psd"
  "by one of several algorithms, synchronous or asynchronous.")
psd_describe(libdtworker1 libs "client library of the parameter server psd"
  "The library with which a program of your own takes part in a training job:"
  "declare, pull, push, step, leave.")
psd_describe(libdtworker-dev libdevel "client library of psd (development files)"
  "Header, pkg-config and CMake files, manual pages and examples of libdtworker.")

set(CPACK_DEBIAN_PSD_PACKAGE_DEPENDS "systemd | systemd-sysusers")
set(CPACK_DEBIAN_PSD_PACKAGE_SUGGESTS "dtworker")
set(CPACK_DEBIAN_PSD_PACKAGE_CONTROL_EXTRA
  "${control}/psd/conffiles;${control}/psd/postinst;${control}/psd/prerm;${control}/psd/postrm")
set(CPACK_DEBIAN_DTWORKER_PACKAGE_DEPENDS "systemd | systemd-sysusers")
set(CPACK_DEBIAN_DTWORKER_PACKAGE_SUGGESTS "psd, dataset-fashion-mnist")
set(CPACK_DEBIAN_DTWORKER_PACKAGE_CONTROL_EXTRA
  "${control}/dtworker/postinst;${control}/dtworker/prerm;${control}/dtworker/postrm")
# The name of the library for programs, and the least version that has all of its functions.
get_target_property(soversion dtworker_shared SOVERSION)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/shlibs
  "libdtworker ${soversion} libdtworker${soversion} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBDTWORKER1_PACKAGE_CONTROL_EXTRA
  "${control}/libdtworker1/triggers;${CMAKE_CURRENT_BINARY_DIR}/shlibs")
set(CPACK_DEBIAN_LIBDTWORKER-DEV_PACKAGE_DEPENDS "libdtworker1 (= ${PROJECT_VERSION}), libzmq3-dev")
set(CPACK_DEBIAN_LIBDTWORKER-DEV_PACKAGE_SHLIBDEPS OFF)

execute_process(COMMAND gzip -9nc ${control}/changelog OUTPUT_FILE ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz
  COMMAND_ERROR_IS_FATAL ANY)
foreach(component ${CPACK_COMPONENTS_ALL})
  install(FILES ${control}/copyright ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${component} COMPONENT ${component})
endforeach()

include(CPack)
