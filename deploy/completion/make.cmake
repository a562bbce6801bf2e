# cmake -DPROGRAM=FILE -DNAME=psd -DIN=completion.bash.in -DOUT=FILE -P make.cmake
execute_process(COMMAND ${PROGRAM} --print-options OUTPUT_VARIABLE TABLE RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --print-options ended with ${result}")
endif()
string(REPLACE "'" "" TABLE "${TABLE}") # it stands in single quotes
configure_file(${IN} ${OUT} @ONLY)
