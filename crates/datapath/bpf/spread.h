/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Spreads the packets of tunnels over CPUs by TEID. All packets of a gNB have the same outer addresses, and an interface with one
 * receive queue gives all packets to one CPU. Packets of a tunnel are handled by one CPU, in order. The receiving CPU gives itself its
 * own packets in the same way: that of a queue can change (with a veth it is the sender's), and those handled at once would overtake
 * the ones that it was given before.
 *
 *   frame ─▶ pith_upf on the receiving CPU ─ TEID known ─▶ cpumap ─▶ pith_upf_spread on the tunnel's CPU
 */
#pragma once
#include "uplink.h"

/* By CPU number. User space sets the number of entries. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct bpf_cpumap_val));
} spread SEC(".maps");

/* The CPU of a tunnel's packets: one of those below settings.spread. */
INLINE u32 cpu_of(u32 teid)
{
	u64 mixed = teid * MIX >> 32;
	return mixed * settings.spread >> 32;
}

/* Gives a packet of a known tunnel to its CPU. Returns an XDP verdict, or NOT_UPLINK if this CPU has to handle the frame. */
NOINLINE int spread_uplink(struct xdp_md *ctx, u32 frame)
{
	struct gpdu gpdu = {};
	struct cursor cursor = behind_link(ctx, frame);
	if (!take_tunnel(&cursor, frame, &gpdu) || !direct_slot(&direct_teid, gpdu.teid))
		return NOT_UPLINK;
	int verdict = bpf_redirect_map(&spread, cpu_of(gpdu.teid), XDP_PASS);
	return verdict == XDP_REDIRECT ? verdict : NOT_UPLINK;
}

/* Takes the UDP checksum out of a tunnel's packet for the kernel's stack: a cpumap loses that a sender on this host has left it to
 * its network card, and the kernel would drop the packet. */
NOINLINE int drop_checksum(struct xdp_md *ctx, u32 frame)
{
	struct cursor cursor = behind_link(ctx, frame);
	u8 protocol;
	if ((u16)frame == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *v6 = take(&cursor, sizeof(*v6));
		if (!v6)
			return 0;
		protocol = v6->nexthdr;
	} else {
		struct iphdr *v4 = take(&cursor, sizeof(*v4));
		if (!v4 || v4->ihl != 5)
			return 0;
		protocol = v4->protocol;
	}
	struct udphdr *udp = take(&cursor, sizeof(*udp));
	if (udp && protocol == IPPROTO_UDP)
		udp->check = 0;
	return 0;
}
