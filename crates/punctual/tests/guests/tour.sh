# What of punctual works on this kernel: the whole of it once, unless ONLY is set, then again for each LACKS, as on a
# kernel without that.
# Each step leaves in /results/LACKS its exit code, what it printed, and what it said.

step() { # name program arguments...
    name=$1
    shift
    "$@" >"$there/$name" 2>"$there/$name.said"
    echo $? >"$there/$name.code"
}
# How kernel events came into a bundle, and what its findings are.
found() { # name bundle documents...
    name=$1 bundle=$2
    shift 2
    sed -n 's/.*"recorder": *"\([^"]*\)".*/\1/p' "$@" 2>/dev/null | head -n 1 >"$there/$name.way"
    [ -d "$bundle" ] && punctual show --json "$bundle" >"$there/$name.shown" 2>/dev/null
}
tour() { # what the kernel lacks; nothing: as it is
    there=/results/${1:-nothing}
    mkdir -p "$there" "/tmp/$1" && cd "/tmp/$1" || exit 1
    step check $without punctual check --json
    step timer $without punctual measure timer --count 40 --set period=5ms --quiet --output a
    step syscall $without punctual measure syscall --duration 200ms --quiet --output b
    step switch $without punctual measure switch --duration 200ms --quiet --output c
    step spin $without punctual measure spin --duration 200ms --quiet --output d
    step trace $without punctual trace --quiet --duration 500ms --output trace
    found trace trace trace/recording/recording.json
    if [ -n "$APPLICATION" ]; then
        step points $without punctual trace --quiet --events none --output points -- $APPLICATION
        found points points
    fi
    step explained $without punctual measure timer --count 40 --set period=5ms --explain --quiet --output explained
    found explained explained explained/windows/windows.json explained/recording/recording.json
    step explain $without punctual explain --json explained
    # A loop of 5 ms that knows nothing of it.
    punctual measure timer --cpus 1 --duration 600s --set period=5ms --quiet --output e >/dev/null 2>&1 & looping=$!
    until [ -e e/phases/000/0000.checkpoint ] || ! kill -0 $looping; do usleep 50000; done
    step attach $without punctual attach $looping --duration 2s --quiet --output attach
    found attach attach
    kill -INT $looping
    wait $looping
    step cpus $without punctual attach --cpus 1 --duration 1s --quiet --output cpus
    found cpus cpus
}

[ -n "$ONLY" ] || tour ''
for lacks in $LACKS; do
    without=
    case $lacks in
    btf) mount -t tmpfs none /sys/kernel/btf ;;
    bpf) without=/usr/bin/without-bpf ;;
    tracefs)
        without=/usr/bin/without-bpf
        umount /sys/kernel/tracing
        umount /sys/kernel/debug
        ;;
    esac
    tour $lacks
    [ $lacks != btf ] || umount /sys/kernel/btf
done
true
