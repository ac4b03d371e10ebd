/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Header parsing. Every parser returns 0 on headers that the fast path does not handle; the packet is then
 * passed on unchanged. */
#pragma once
#include "tables.h"
#include <bpf/bpf_endian.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#define VLAN_LEN 4
#define VLAN_ID 0x0fff
#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset */
#define IPV4_OFFSET 0x1fff

/* A read position in a packet: bytes between `at` and `end` are unread. */
struct cursor {
	void *at, *end;
};

/* The next `size` bytes, or null. */
INLINE void *take(struct cursor *cursor, u32 size)
{
	void *taken = cursor->at;
	if (taken + size > cursor->end)
		return 0;
	cursor->at = taken + size;
	return taken;
}

struct ethernet {
	u16 addresses[6];
	u16 type;
};

struct vlan {
	u16 tag, type;
};

/* The result of read_frame(): the EtherType of the payload (wire), and these flags. */
#define FRAME_OURS 0x10000    /* addressed to an interface of the program; others are the kernel's */
#define FRAME_TUNNELS 0x20000 /* it came by an interface where radios and other UPFs are */
#define FRAME_TAGGED 0x40000

/* The octets of the destination MAC in the frame's first eight octets. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DESTINATION 0x0000ffffffffffffull
#else
#define DESTINATION 0xffffffffffff0000ull
#endif

/* The flags of a frame, by its device and VLAN. FRAME_OURS requires the interface's own MAC as
 * destination, not another host's or a group address. */
INLINE u32 find_link(struct xdp_md *ctx, u16 vlan, const struct ethernet *ethernet)
{
	u64 from = (u64)ctx->ingress_ifindex << 32 | vlan, to = *(const u64 *)ethernet & DESTINATION;
	for (u32 i = 0; i < LINKS && i < settings.link_count; i++) {
		const volatile struct link *link = &settings.links[i];
		if (link->from == from)
			return (i < settings.tunnel_links ? FRAME_TUNNELS : 0) | (link->to == to ? FRAME_OURS : 0);
	}
	return 0;
}

/* Reads the Ethernet header with at most one VLAN tag; a priority tag (VLAN 0) counts as untagged. */
INLINE u32 read_frame(struct xdp_md *ctx)
{
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	struct ethernet *ethernet = take(&cursor, sizeof(*ethernet));
	if (!ethernet)
		return 0;
	if (ethernet->type != bpf_htons(ETH_P_8021Q))
		return find_link(ctx, 0, ethernet) | ethernet->type;
	struct vlan *vlan = take(&cursor, sizeof(*vlan));
	return vlan ? find_link(ctx, vlan->tag & bpf_htons(VLAN_ID), ethernet) | FRAME_TAGGED | vlan->type : 0;
}

/* A cursor after the link header. */
INLINE struct cursor behind_link(struct xdp_md *ctx, u32 frame)
{
	u32 length = frame & FRAME_TAGGED ? sizeof(struct ethernet) + VLAN_LEN : sizeof(struct ethernet);
	/* Separate bounds for each cursor, as the verifier needs them. */
	asm volatile("" ::: "memory");
	return (struct cursor){ (void *)(long)ctx->data + length, (void *)(long)ctx->data_end };
}

INLINE struct address address_v4(u32 wire)
{
	return (struct address){ .high = 0, .low = wire };
}

INLINE struct address address_v6(const struct in6_addr *of)
{
	const u32 *words = of->in6_u.u6_addr32;
	return (struct address){ (u64)words[1] << 32 | words[0], (u64)words[3] << 32 | words[2] };
}

/* The ECN field (RFC 3168 5). */
enum ecn { NOT_ECT, ECT_1, ECT_0, CE };
#define ECN 3

/* The ECN field of a packet that leaves a tunnel (RFC 6040 4.2): two bits each, by the outer field and then by its own. */
#define MERGED_ECN 0xfce4d4e4u

/* The type of service of a packet that leaves a tunnel. A packet that must be dropped is unchanged. Without branches, for
 * the verifier. */
INLINE u8 tos_behind(u8 tos, u8 outer_ecn)
{
	u32 at = (outer_ecn & ECN) * 8 + (tos & ECN) * 2;
	return (tos & ~ECN) | (MERGED_ECN >> at & ECN);
}

INLINE u8 traffic_class(const struct ipv6hdr *ip)
{
	return ip->priority << 4 | ip->flow_lbl[0] >> 4;
}

/* The fields of a user packet that filters match. */
struct key {
	struct address source, destination;
	u16 source_port, destination_port;
	u8 has_ports;
	u8 protocol;
	u8 tos;
	u8 v6;
};

/* Where a CPU keeps the fields for filters: they have no room on the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct key));
} keys SEC(".maps");

/* A user packet. */
struct flow {
	void *at;
	u32 length;
	u8 v6;
	u8 icmp6; /* ICMPv6 without extension headers */
	u8 whole; /* protocol and ports are known, or known to be absent */
	u8 natted; /* `destination` and `port` are those that the packet has after NAT */
	u8 outer_ecn; /* of the tunnel that it arrived by */
	u16 port;  /* wire; the destination */
	struct address source, destination;
};

INLINE void take_ports(struct key *key, struct cursor *cursor)
{
	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP && key->protocol != IPPROTO_SCTP)
		return;
	u16 *ports = take(cursor, 4);
	if (!ports)
		return;
	key->source_port = bpf_ntohs(ports[0]);
	key->destination_port = bpf_ntohs(ports[1]);
	key->has_ports = 1;
}

/* Reads an IPv4 packet; the frame contains `room` bytes of it. */
INLINE int take_v4(struct cursor cursor, struct flow *flow, u32 room)
{
	struct iphdr *ip = take(&cursor, sizeof(*ip));
	if (!ip || ip->version != 4 || ip->ihl < 5)
		return 0;
	flow->at = ip;
	flow->source = address_v4(ip->saddr);
	flow->destination = address_v4(ip->daddr);
	flow->length = bpf_ntohs(ip->tot_len);
	flow->v6 = 0;
	flow->icmp6 = 0;
	flow->whole = ip->ihl == 5;
	flow->natted = 0;
	flow->outer_ecn = NOT_ECT;
	flow->port = 0;
	return flow->length >= ip->ihl * 4 && flow->length <= room;
}

/* Next-header values of extension headers before the upper-layer protocol (RFC 8200 4.1). */
INLINE int is_extension(u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT || next == IPPROTO_DSTOPTS;
}

INLINE int take_v6(struct cursor cursor, struct flow *flow, u32 room)
{
	struct ipv6hdr *ip = take(&cursor, sizeof(*ip));
	if (!ip || ip->version != 6)
		return 0;
	flow->at = ip;
	flow->source = address_v6(&ip->saddr);
	flow->destination = address_v6(&ip->daddr);
	flow->length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	flow->v6 = 1;
	flow->icmp6 = ip->nexthdr == IPPROTO_ICMPV6;
	flow->whole = !is_extension(ip->nexthdr);
	flow->natted = 0;
	flow->outer_ecn = NOT_ECT;
	flow->port = 0;
	return flow->length <= room;
}

/* ff02::1:2, all DHCPv6 servers of a link (RFC 8415 7.1); wire. */
#define ALL_DHCP_HIGH bpf_cpu_to_be64(0xff02000000000000ull)
#define ALL_DHCP_LOW bpf_cpu_to_be64(0x10002)

/* Whether it is for the link between the UE and the UPF only: ICMPv6, without extension headers, to a link-local or link-local
 * multicast address, or a packet to all DHCPv6 servers, of which user space refuses all but DHCPv6. */
INLINE int is_on_link(const struct flow *flow)
{
	const struct address *to = &flow->destination;
	u16 first = bpf_ntohs((u16)to->high);
	if (flow->v6 && to->high == ALL_DHCP_HIGH && to->low == ALL_DHCP_LOW)
		return 1;
	return flow->icmp6 && ((first & 0xffc0) == 0xfe80 || (first & 0xff0f) == 0xff02);
}

/* Reads the fields for filters from a parsed packet; `end` is the end of the frame. */
INLINE void read_key(struct key *key, const struct flow *flow, void *end)
{
	struct cursor cursor = { flow->at, end };
	u32 rest = flow->length - (flow->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	key->source = flow->source;
	key->destination = flow->destination;
	key->v6 = flow->v6;
	if (flow->v6) {
		struct ipv6hdr *ip = take(&cursor, sizeof(*ip));
		if (!ip)
			return;
		key->protocol = ip->nexthdr;
		key->tos = tos_behind(traffic_class(ip), flow->outer_ecn);
	} else {
		struct iphdr *ip = take(&cursor, sizeof(*ip));
		if (!ip)
			return;
		key->protocol = ip->protocol;
		key->tos = tos_behind(ip->tos, flow->outer_ecn);
		if (ip->frag_off & bpf_htons(IPV4_OFFSET))
			return;
	}
	/* The frame's padding is not read as ports. */
	if (rest >= 4)
		take_ports(key, &cursor);
	if (flow->natted)
		key->destination_port = bpf_ntohs(flow->port);
}

/* Bytes before the packet in the frame. */
INLINE long before(struct xdp_md *ctx, const struct flow *flow)
{
	long bytes = flow->at - (void *)(long)ctx->data;
	SCALAR(bytes);
	return bytes;
}

/* The packet's type of service or traffic class. */
INLINE u8 tos_of(const struct flow *flow)
{
	return flow->v6 ? traffic_class(flow->at) : ((struct iphdr *)flow->at)->tos;
}

/* Whether the packet's sender slows down by many marks: ECT(1), or CE, which that may have been (RFC 9331 5.1). */
INLINE int is_scalable(const struct flow *flow)
{
	return tos_of(flow) & ECT_1;
}

/* Whether a router of the tunnel's path reported congestion that the packet cannot carry on (RFC 6040 4.2). */
INLINE int loses_congestion(const struct flow *flow)
{
	return flow->outer_ecn == CE && (tos_of(flow) & ECN) == NOT_ECT;
}

/* Whether a router may forward the packet: its hop limit is above 1. */
INLINE int has_hop(const struct flow *flow)
{
	return flow->v6 ? ((struct ipv6hdr *)flow->at)->hop_limit > 1 : ((struct iphdr *)flow->at)->ttl > 1;
}

/* Decrements the hop limit and updates the checksum by RFC 1624: a word less by 0x0100 is a sum greater by
 * 0x0100. */
INLINE void take_hop(const struct flow *flow)
{
	if (flow->v6) {
		((struct ipv6hdr *)flow->at)->hop_limit--;
		return;
	}
	struct iphdr *ip = flow->at;
	u32 sum = ip->check + bpf_htons(0x0100);
	ip->check = sum + (sum >= 0xffff);
	ip->ttl--;
}

/* Whether it may be an error that a router reports: one with an address in a closed network may be on the path. */
INLINE int may_be_icmp(const struct flow *flow)
{
	const struct iphdr *v4 = flow->at;
	const struct ipv6hdr *v6 = flow->at;
	return flow->v6 ? v6->nexthdr == IPPROTO_ICMPV6 || is_extension(v6->nexthdr) : v4->protocol == IPPROTO_ICMP;
}
