#!/bin/bash
# Sources the completions made at build time and presses Tab: check_completion.sh FOLDER
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT
bad=0
for program in psd dtworker psctl; do
    . "$1/$program.bash" || exit 1
done
compopt() { :; }
touch file.csv

# expect "LINE, split into words" "what is offered": the last word is being completed.
expect()
{
    local got
    read -ra COMP_WORDS <<<"$1"
    [ "${1: -1}" = ' ' ] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    "_${COMP_WORDS[0]}"
    got=${COMPREPLY[*]}
    [ "$got" = "$2" ] && return
    echo "check_completion.sh: '$1' gives '$got', expected '$2'"
    bad=1
}

expect "dtworker " "train run compare eval replay check"
expect "dtworker tr" "train"
expect "dtworker train --st" "--steps --staleness-bound --start-timeout --step-delay"
expect "dtworker eval --m" "--model-file"
expect "dtworker train --algorithm ssgd-" "ssgd-diff-lr"
expect "dtworker train --on-loss " "shrink fail"
expect "dtworker run --reduce = " "mean count sum"
expect "dtworker run --reduce = c" "count"
expect "dtworker run --reduce =" "mean count sum"
expect "dtworker train --data f" "file.csv"
expect "dtworker check f" "file.csv"
expect "dtworker train --overlap --fr" "--fresh"
expect "dtworker train --lr " ""
expect "psd --inse" "--insecure"
expect "psd --log-level w" "warning"
expect "psd -f fi" "file.csv"
expect "psd -o log_l" "log_level="
expect "psd -o log_level = n" "notice"
expect "psd -o once = " "yes no"
expect "psctl " "status placement kick set shutdown"
expect "psctl --json st" "status"
expect "psctl status --js" "--json"
expect "psctl --admin x k" "kick"
# Each command of the library of commands has all its options.
for row in "psd:" "dtworker:train" "dtworker:run" "dtworker:compare" "dtworker:replay" "dtworker:eval" "dtworker:check" "psctl:"; do
    program=${row%%:*} command=${row##*:}
    help=$("$2/$program" $command --help | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--[a-z-]+')
    expect "$program $command --" "$(echo $help)"
done
exit $bad
