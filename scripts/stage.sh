# shellcheck shell=bash
# Sourced by scripts that run a core: creates network namespaces, starts processes in them, and removes
# both. The script itself also runs in its own PID, mount and network namespace, so however it ends, it leaves nothing
# behind and changes nothing outside. Root is not needed: without it the namespaces belong to a user namespace.

stage_work='' # directory of logs and configuration
stage_keep='' # if set, the directory is kept
stage_pids=()

# Restarts the script in its namespaces: stage_enter "$@". The working directory is the repository.
stage_enter() {
  if [[ -z ${PITH_STAGE:-} ]]; then
    local user=()
    [[ $(id -u) == 0 ]] || user=(--user --map-root-user)
    local own=(unshare ${user[@]+"${user[@]}"} --net --mount --pid --fork --kill-child) script=$PWD/scripts/$(basename "$0")
    export PITH_STAGE=$$
    is_root_a_mount || stage_enter_chroot "$script" "$@"
    exec "${own[@]}" -- "$script" "$@"
  fi
  mount -t proc proc /proc 2>/dev/null || true
  # 'ip netns' stores its names here; the mount hides them from the host.
  mkdir -p /run/netns 2>/dev/null || true
  mount -t tmpfs none /run/netns 2>/dev/null || mount -t tmpfs none /run
  # The socket of the 'pith' commands is here.
  mkdir -p /run/pith 2>/dev/null || { mount -t tmpfs none /run; mkdir -p /run/netns /run/pith; }
  mount -t tmpfs none /run/pith
  [[ -r /dev/net/tun && -w /dev/net/tun ]] || {
    echo "$(basename "$0"): /dev/net/tun is missing or this user may not open it: 'sudo modprobe tun; sudo chmod 666 /dev/net/tun', or run this script with sudo" >&2
    exit 1
  }
}

is_root_a_mount() { awk '$5 == "/" { found = 1 } END { exit !found }' /proc/self/mountinfo; }

# In a chroot, the root directory is no mount, so that neither 'unshare' nor 'ip netns exec' can make its mounts private. The
# root directory is bound to another directory, which is then a mount, and the script runs in that.
stage_enter_chroot() { # script, argument...
  local root status=0
  root=$(mktemp -d)
  "${own[@]}" --propagation unchanged -- bash -c '
    root=$1 directory=$2; shift 2
    mount --rbind / "$root" && mount --make-rprivate "$root" || exit
    exec chroot "$root" bash -c "cd \"\$1\" && shift && exec \"\$@\"" - "$directory" "$@"' - "$root" "$PWD" "$@" || status=$?
  # If the mount around the chroot is shared, the binding is there, too.
  umount --lazy "$root" 2>/dev/null || true
  rmdir "$root"
  exit "$status"
}

# Creates the directory of the logs: stage_open [DIRECTORY to keep]
stage_open() {
  stage_keep=${1:-}
  stage_work=${stage_keep:-$(mktemp -d)}
  mkdir -p "$stage_work"
  trap stage_close EXIT
  trap 'exit 130' INT TERM
}

stage_close() {
  stop_all
  [[ -n $stage_keep ]] || rm -rf "$stage_work"
}

# The release binaries: sets $bin.
stage_binaries() { # program...
  bin=${PITH_BIN:-${CARGO_TARGET_DIR:-target}/release}
  bin=$(realpath -m "$bin")
  local program
  for program; do
    [[ -e $bin/$program ]] || { echo "$(basename "$0"): $bin/$program is missing: run 'make build'" >&2; exit 1; }
  done
}

say() { printf '\n== %s\n' "$*"; }

namespaces() { # name...
  local name
  for name; do
    ip netns add "$name"
    ip -n "$name" link set lo up
  done
}

wire() { # namespace address device, namespace address device
  ip link add wire-a type veth peer name wire-b
  ip link set wire-a netns "$1" name "$3"
  ip link set wire-b netns "$4" name "$6"
  ip -n "$1" addr add "$2" dev "$3"
  ip -n "$4" addr add "$5" dev "$6"
  ip -n "$1" link set "$3" up
  ip -n "$4" link set "$6" up
}

# Starts a command in a namespace; its pid is in $started.
start() { # namespace, name, command...
  local namespace=$1 name=$2; shift 2
  ip netns exec "$namespace" "$@" >"$stage_work/$name.log" 2>&1 &
  started=$!
  stage_pids+=("$started")
}

# Waits up to 15 s until a log says something; what by default: that Pith is ready.
ready() { # name, pattern
  local _
  for _ in $(seq 150); do
    grep -q "${2:-ready in}" "$stage_work/$1.log" && return
    sleep 0.1
  done
  echo "$(basename "$0"): $1 is not ready after 15 s; its log:" >&2
  tail -n 20 "$stage_work/$1.log" >&2
  return 1
}

# Runs a command until it succeeds, up to so many seconds.
within() { # seconds, command...
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# The core's configuration in namespace 'core': $stage_work/pith.yaml.
#
#   [ran] 10.210.0.2 ──N2, N3── 10.210.0.1 [core] 10.211.0.1 ──N6── 10.211.0.2 [dn]
stage_network() { # store: a path, or memory
  namespaces core ran dn
  wire core 10.210.0.1/24 ran0 ran 10.210.0.2/24 core0
  wire core 10.211.0.1/24 dn0 dn 10.211.0.2/24 core0
  cat >"$stage_work/pith.yaml" <<Y
amf:
  n2:
    addresses: [10.210.0.1]
upf:
  n3: 10.210.0.1
store:
  path: $1
sbi:
  pki: $stage_work/pki
Y
}

pith() { ip netns exec core "$bin/pith" --config "$stage_work/pith.yaml" "$@"; }
ran() { ip netns exec ran "$bin/pith-ran" run --test-network --amf 10.210.0.1:38412 --n3 10.210.0.2 "$@"; }

# Starts gNBs and UEs that stay connected, and waits until their procedures have ended; their pid is in $started.
ran_holds() { # option...
  rm -f "$stage_work/ran.json"
  ip netns exec ran "$bin/pith-ran" run --test-network --amf 10.210.0.1:38412 --n3 10.210.0.2 --hold --json "$stage_work/ran.json" "$@" &
  started=$!
  stage_pids+=("$started")
  until [[ -s $stage_work/ran.json ]] || ! kill -0 "$started" 2>/dev/null; do sleep 0.05; done
}

# The number of entries in a list of the core that match a condition on 'e': count ue 'e["cm"] == "CM-IDLE"'
count() { pith --json "$1" list | python3 -c "import json, sys; print(sum(1 for e in json.load(sys.stdin) if ${2:-True}))"; }
core_has() { # number, list, condition
  local there; there=$(count "$2" "${3:-True}")
  [[ $there == "$1" ]] || { echo "$there instead of $1: $2 list, ${3:-all}"; pith "$2" list | head -n 12; return 1; }
}

# All in one process; its pid is in $started.
start_core() { # option...
  start core core "$bin/pith" --config "$stage_work/pith.yaml" up --test-network "$@"
  ready core
  ready core ' associated'
}

# Each NF as a separate process.
start_split_core() { # option of the UDR's process...
  local nf extra
  for nf in nrf udr upf udm ausf pcf nssf smf amf; do
    extra=(); [[ $nf == udr ]] && extra=(--test-network "$@")
    start core "$nf" "$bin/pith" --config "$stage_work/pith.yaml" nf "$nf" ${extra[@]+"${extra[@]}"}
  done
  for nf in nrf udr udm ausf pcf nssf smf amf; do ready "$nf"; done
  ready smf ' associated'
}

stop() { # pid...
  kill "$@" 2>/dev/null || true
  wait "$@" 2>/dev/null || true
}

stop_hard() { # pid...: with SIGKILL, so that they cannot shut down
  kill -9 "$@" 2>/dev/null || true
  wait "$@" 2>/dev/null || true
}

stop_all() {
  ((${#stage_pids[@]})) && stop "${stage_pids[@]}"
  stage_pids=()
}

# A table of checks: 'check NAME COMMAND...' for each, then 'checked', whose status is the result.
check_passed=0 check_failed=0
check() {
  local what=$1 begin=$EPOCHREALTIME status=ok; shift
  if "$@" >"$stage_work/check.log" 2>&1; then check_passed=$((check_passed + 1)); else
    check_failed=$((check_failed + 1)) status=FAILED
  fi
  printf '%-76s %6s  %5d ms\n' "$what" "$status" $(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  [[ $status == ok ]] || sed 's/^/    /' "$stage_work/check.log" | tail -n 12
}

skip() { printf '%-76s skipped: %s\n' "$1" "$2"; } # name, reason

checked() {
  printf '\n%s passed, %s failed\n' "$check_passed" "$check_failed"
  ((check_failed == 0))
}
