# shellcheck shell=bash
# Sourced by scripts/demo: the tour, with a core of two slices and IPv6, no NAT, and tshark if it is installed.

tour() {
  tour_network
  local status=0 capture=''
  local core=(--subscribers 10 --set upf.nat=false)
  # A veth leaves the checksums of TCP to the receiver, which the generic XDP of a demo can't know.
  ip netns exec dn ethtool -K core0 tx off >/dev/null 2>&1 || core+=(--set upf.datapath=portable)
  if command -v dumpcap >/dev/null && command -v tshark >/dev/null; then
    start core dumpcap dumpcap -q -i lo -i ran0 -w "$stage_work/tour.pcapng" -f 'sctp or udp port 8805 or udp port 2152'
    capture=$started
    ready dumpcap 'File:'
    # tshark reads NAS only in the clear.
    core+=(--set 'amf.security.ciphering=[nea0]')
  fi
  say "a core with slices 1 and 2, IPv4 and IPv6; its data network has a route of the UEs"
  start_core "${core[@]}"
  grep -hE 'user plane: (XDP|portable path)' "$stage_work/core.log" | sed 's/.*user plane:/user plane:/'
  python3 - <<'J' | pith subscriber import - --existing replace >"$stage_work/import.log"
import json
slice = lambda sst: {"snssai": {"sst": sst}, "default": sst == 1, "dnns": [{"dnn": "internet"}]}
keys = {"k": "465B5CE8B199B49FAA5F0A2EE238A6BC", "opc": "E8ED289DEBA952E4283B54E88E6183CA"}
print(json.dumps([{"supi": "imsi-999700000000003", "authentication": keys, "ambr": {"uplink": "1 Gbps", "downlink": "1 Gbps"}, "slices": [slice(1), slice(2)]}]))
J
  say "a ping every 2 ms and a TCP stream of 20 Mbit/s flow during handovers"
  python3 scripts/tour.py --bin "$bin" --work "$stage_work" ${json:+--json "$json"} || status=$?
  if ((status)); then tail -n 15 "$stage_work"/core.log >&2; fi
  if [[ -n $capture ]]; then
    sleep 0.5
    stop "$capture"
    tour_examine || status=1
  else
    say "tshark is not installed: the recording is not checked (apt-get install tshark)"
  fi
  return "$status"
}

tour_network() {
  ip -n ran addr add 10.210.0.3/24 dev core0
  ip -n core addr add 2001:db8:211::1/64 dev dn0 nodad
  ip -n dn addr add 2001:db8:211::2/64 dev core0 nodad
  ip -n dn route add 10.45.0.0/16 via 10.211.0.1
  ip -n dn route add 2001:db8:45::/48 via 2001:db8:211::1
  cat >>"$stage_work/pith.yaml" <<'Y'
smf:
  timers: {rq_timer: 4s}
  data_networks:
    - {name: internet, pool: 10.45.0.0/16, pool6: '2001:db8:45::/48'}
network:
  slices: [1, 2]
Y
  # The link-local addresses of the veths are tentative at first (RFC 4862 5.4).
  within 10 ip netns exec core ping -6 -c 1 -W 1 2001:db8:211::2
}

# Fails on a malformed packet, and on an expert error.
tour_examine() {
  export XDG_CONFIG_HOME=$stage_work/tshark
  mkdir -p "$XDG_CONFIG_HOME/wireshark/profiles/pith-tour"
  local read=(tshark -C pith-tour -n -r "$stage_work/tour.pcapng" -o nas-5gs.null_decipher:TRUE)
  local number found
  number=$("${read[@]}" -Y 'ngap || pfcp || gtp' -T fields -e frame.number 2>/dev/null | wc -l)
  found=$("${read[@]}" -Y '_ws.malformed || _ws.expert.severity == "Error"' -T fields -e frame.number -e _ws.col.Protocol -e _ws.col.Info \
    -e _ws.expert.message 2>/dev/null | head -n 20)
  if ((number > 0)) && [[ -z $found ]]; then
    echo "tshark: nothing malformed in $number packets of NGAP, PFCP and GTP-U"
  else
    printf 'tshark: malformed, of %s packets:\n%s\n' "$number" "$found"
    return 1
  fi
}
