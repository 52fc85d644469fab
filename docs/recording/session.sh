# What is typed in the picture of the README.  `bash docs/recording/session.sh` records it anew and draws the picture.
#
# It is recorded in a PID namespace of its own, in which no server but its own can be found and killed.

cd "$(dirname "$0")" || exit
if [ "$1" != typed ]; then
    export PATH="$PWD/../../.venv/bin:$PATH"
    rm -f session.cast
    unshare --pid --fork --mount-proc --kill-child \
        holdfast run -t --record session.cast -- bash session.sh typed </dev/null || exit
    chmod 644 session.cast
    exec python ../picture.py session.cast session.svg
fi

type_and_run() {
    printf '\e[32m$\e[0m '
    for word in $1; do
        sleep 0.08
        printf '%s ' "$word"
    done
    sleep 0.25
    printf '\n'
    eval "$1"
    sleep "${2:-0.8}"
}

[ $$ -lt 100 ] || exit 1 # There are others here.
export HOLDFAST_URL=ws://127.0.0.1:8765

type_and_run 'holdfast serve --listen $HOLDFAST_URL &' 1.2
type_and_run 'holdfast run -d --name train -- python3 train.py' 2.2
type_and_run 'holdfast logs train'
type_and_run 'kill -9 $(pgrep -x holdfast-server)' 0.6
type_and_run 'holdfast logs -f train'
type_and_run 'holdfast ps -a' 0.2
kill $!
wait $! 2>/dev/null
