#!/bin/sh
# Embeds every .jsonl file of a folder that has no vectors yet, or changed since; of a file that changed only
# the new texts are computed, and a run that was cut off goes on. For cron:
#
#   15 2 * * *  nightly.sh /srv/texts >>/var/log/embed.log 2>&1
#
# Rows that cannot be used go to FILE.embed.parquet.rejects.jsonl. One bad file does not stop the others; the
# script then ends with the exit code of the last failure (see the table in README.md).
set -eu

folder=${1:?usage: nightly.sh FOLDER}
status=0

log() { printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"; }

for input in "$folder"/*.jsonl; do
    case $input in *.rejects.jsonl) continue ;; esac
    [ -e "$input" ] || continue
    output=${input%.jsonl}.embed.parquet
    if [ -e "$output" ] && [ -z "$(find "$input" -newer "$output")" ]; then
        continue
    fi
    log "embedding $input"
    code=0
    poolembed embed "$input" --on-error skip || code=$?
    case $code in
        0) ;;
        75) log "another run is at work on $input" ;;
        130 | 143) exit "$code" ;; # interrupted: the rest is for the next night
        *) log "failed with exit code $code: $input"; status=$code ;;
    esac
done

exit "$status"
