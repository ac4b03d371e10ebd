/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* NAT44 by the kernel's connection tracking (docs/adr/0023): the kernel translates the first packets of a connection and
 * keeps its addresses and ports; the program translates the packets of established connections by the same entry.
 * Everything else takes the kernel's path: first and last packets, fragments, ICMP, IP options. */
#pragma once
#include "tunnel.h"
#include <linux/tcp.h>

/* A packet of a connection, and the address and port that replace the UE's side (uplink) or the public side
 * (downlink). All in wire order. */
struct mapping {
	u32 source, destination;
	u16 source_port, destination_port;
	u32 protocol;
	u32 direction;
	u32 address; /* result */
	u16 port;    /* result */
	u16 reserved;
};

/* Where a CPU keeps the mapping of its packet: it has no room on the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct mapping));
} mappings SEC(".maps");

#if NAT

/* The parts of the kernel's types that the program reads; the loader finds their offsets in the kernel's BTF. */
#define KERNEL_TYPE __attribute__((preserve_access_index))

union nf_inet_addr {
	u32 ip;
} KERNEL_TYPE;

union nf_conntrack_man_proto {
	u16 all;
} KERNEL_TYPE;

struct nf_conntrack_man {
	union nf_inet_addr u3;
	union nf_conntrack_man_proto u;
} KERNEL_TYPE;

struct nf_conntrack_tuple {
	struct nf_conntrack_man src;
	struct {
		union nf_inet_addr u3;
		union {
			u16 all;
		} u;
	} dst;
} KERNEL_TYPE;

struct nf_conntrack_tuple_hash {
	struct nf_conntrack_tuple tuple;
} KERNEL_TYPE;

struct ip_ct_tcp {
	u8 state;
} KERNEL_TYPE;

union nf_conntrack_proto {
	struct ip_ct_tcp tcp;
} KERNEL_TYPE;

struct nf_conn {
	u32 timeout; /* in ticks */
	struct nf_conntrack_tuple_hash tuplehash[2];
	unsigned long status;
	union nf_conntrack_proto proto;
} KERNEL_TYPE;

/* As in all kernels with these functions (Linux 6.0). */
struct bpf_ct_opts {
	__s32 netns_id;
	__s32 error;
	u8 l4proto;
	u8 dir;
	u8 reserved[2];
};

extern struct nf_conn *bpf_xdp_ct_lookup(struct xdp_md *ctx, struct bpf_sock_tuple *tuple, u32 tuple__sz,
					 struct bpf_ct_opts *opts, u32 opts__sz) __ksym;
extern void bpf_ct_release(struct nf_conn *connection) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *connection, u32 milliseconds) __ksym;

#define CT_SEEN_REPLY 0x2
#define CT_ASSURED 0x4
#define CT_SEQ_ADJUST 0x40 /* a helper changes the payload */
#define CT_DYING 0x200
#define CT_HELPER 0x2000
#define CT_TCP_ESTABLISHED 3
#define CT_REPLY 1 /* direction */

/* The time after which the kernel regards a UDP connection with answers as a stream: it has to see a packet later. */
#define STREAM_AFTER_MS 2500

INLINE u32 ticks_of(u32 milliseconds)
{
	return (u64)milliseconds * settings.hz / 1000;
}

/* Whether the program may translate a packet of the connection. Extends the connection's life at half of it. */
INLINE int is_translated_here(struct nf_conn *connection, const struct bpf_ct_opts *found)
{
	u64 status = connection->status;
	__s32 left = connection->timeout - (u32)bpf_jiffies64();
	u32 whole = settings.udp_timeout;
	if (status & (CT_SEQ_ADJUST | CT_DYING | CT_HELPER))
		return 0;
	/* The kernel has to see the first answer, and the start and end of TCP connections. */
	if (found->dir == CT_REPLY && !(status & CT_SEEN_REPLY))
		return 0;
	if (found->l4proto == IPPROTO_TCP) {
		if (connection->proto.tcp.state != CT_TCP_ESTABLISHED)
			return 0;
		whole = settings.tcp_timeout;
	} else if (status & CT_ASSURED) {
		whole = settings.udp_stream_timeout;
	} else if (status & CT_SEEN_REPLY) {
		return left > (__s32)ticks_of(whole - STREAM_AFTER_MS);
	}
	if (left < (__s32)(ticks_of(whole) / 2))
		bpf_ct_change_timeout(connection, whole);
	return 1;
}

/* Reads the mapping from the connection's `other` direction; 0 if the packet's far side is translated, too. */
INLINE int read_mapping(struct mapping *mapping, const struct nf_conntrack_tuple *other)
{
	if (mapping->direction == UPLINK) {
		mapping->address = other->dst.u3.ip;
		mapping->port = other->dst.u.all;
		return other->src.u3.ip == mapping->destination && other->src.u.all == mapping->destination_port;
	}
	mapping->address = other->src.u3.ip;
	mapping->port = other->src.u.all;
	return other->dst.u3.ip == mapping->source && other->dst.u.all == mapping->source_port;
}

/* Finds the connection of a packet; 0 if the kernel has to translate it. */
INLINE int find_connection(struct xdp_md *ctx, struct mapping *mapping)
{
	struct bpf_sock_tuple tuple = {
		.ipv4 = {
			.saddr = mapping->source,
			.daddr = mapping->destination,
			.sport = mapping->source_port,
			.dport = mapping->destination_port,
		},
	};
	struct bpf_ct_opts options = { .netns_id = BPF_F_CURRENT_NETNS, .l4proto = mapping->protocol };
	struct nf_conn *connection = bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
	if (!connection)
		return 0;
	int is_found = 0;
	if (is_translated_here(connection, &options))
		is_found = read_mapping(mapping, options.dir == CT_REPLY ? &connection->tuplehash[0].tuple
									  : &connection->tuplehash[1].tuple);
	bpf_ct_release(connection);
	return is_found;
}

#else

INLINE int find_connection(struct xdp_md *ctx, struct mapping *mapping)
{
	return 0;
}

#endif

/* Offsets in the UDP and TCP header. */
#define UDP_CHECK 6
#define TCP_CHECK 16
#define TCP_FLAGS 13
#define TCP_BEGINS_OR_ENDS 0x07 /* FIN, SYN, RST */

/* The sum of the pseudo header. A local sender leaves it in the checksum field for its network card to complete. */
INLINE u16 sum_pseudo_header(const struct iphdr *ip, u32 length)
{
	return fold((u64)ip->saddr + ip->daddr + bpf_htons(ip->protocol) + bpf_htons(length));
}

/* Finds the translation of an IPv4 packet of `length` bytes; 0 if the kernel has to translate it. */
NOINLINE int find_mapping(struct xdp_md *ctx, u32 at, u32 length, u32 direction, struct mapping *mapping)
{
	struct cursor cursor = packet_at(ctx, at);
	struct iphdr *ip = take(&cursor, sizeof(*ip));
	if (!mapping || !ip || ip->ihl != 5 || ip->frag_off & bpf_htons(IPV4_FRAGMENT))
		return 0;
	length -= sizeof(*ip);
	u8 *header = cursor.at;
	u16 check;
	if (ip->protocol == IPPROTO_TCP) {
		if (!take(&cursor, sizeof(struct tcphdr)) || length < sizeof(struct tcphdr) ||
		    header[TCP_FLAGS] & TCP_BEGINS_OR_ENDS)
			return 0;
		check = *(u16 *)(header + TCP_CHECK);
	} else if (ip->protocol == IPPROTO_UDP) {
		if (!take(&cursor, sizeof(struct udphdr)) || length < sizeof(struct udphdr))
			return 0;
		check = *(u16 *)(header + UDP_CHECK);
	} else {
		return 0;
	}
	/* One correct checksum in 65,536 equals that sum by chance. */
	u16 pseudo = sum_pseudo_header(ip, length);
	if (check == pseudo && fold((u64)pseudo + sum_frame(ctx, at + sizeof(*ip), length)) != 0xffff)
		return 0;
	*mapping = (struct mapping){
		.source = ip->saddr,
		.destination = ip->daddr,
		.source_port = *(u16 *)header,
		.destination_port = *(u16 *)(header + 2),
		.protocol = ip->protocol,
		.direction = direction,
	};
	return find_connection(ctx, mapping);
}

/* A checksum after words in its scope changed by `change`, which is the sum of their new values and the complements of
 * their old ones (RFC 1624). */
INLINE u16 update_checksum(u16 check, u64 change)
{
	return ~fold((u64)(u16)~check + change);
}

/* Replaces an address and a port in the packet. */
NOINLINE int translate(struct xdp_md *ctx, u32 at, const struct mapping *mapping)
{
	struct cursor cursor = packet_at(ctx, at);
	struct iphdr *ip = take(&cursor, sizeof(*ip));
	u16 *ports = take(&cursor, sizeof(struct udphdr));
	if (!mapping || !ip || !ports)
		return 0;
	u32 is_up = mapping->direction == UPLINK;
	u32 *address = is_up ? &ip->saddr : &ip->daddr;
	u16 *port = is_up ? ports : ports + 1;
	u64 change = (u64)(u32)~*address + mapping->address;
	u64 with_port = change + (u16)~*port + mapping->port;
	*address = mapping->address;
	*port = mapping->port;
	ip->check = update_checksum(ip->check, change);
	if (mapping->protocol == IPPROTO_UDP) {
		u16 *check = ports + UDP_CHECK / 2;
		u16 updated = update_checksum(*check, with_port);
		/* Zero means no checksum, before and after (RFC 768). */
		if (*check)
			*check = updated ? updated : 0xffff;
		return 1;
	}
	u16 *check = take(&cursor, TCP_CHECK - sizeof(struct udphdr) + 2);
	if (!check)
		return 0;
	check += (TCP_CHECK - sizeof(struct udphdr)) / 2;
	*check = update_checksum(*check, with_port);
	return 1;
}

/* Whether the packets of a session get another source. */
INLINE int is_natted(const struct session *session, const struct flow *flow)
{
	return NAT && session->flags & UE_NAT && !flow->v6;
}

/* Finds the translation of a packet from a UE. The kernel translates packets of networks behind the UE, if any. */
INLINE int find_uplink_mapping(struct xdp_md *ctx, const struct session *session, const struct flow *flow,
			       struct mapping *mapping)
{
	return (u32)flow->source.low == session->ue_v4 &&
	       find_mapping(ctx, before(ctx, flow), flow->length, UPLINK, mapping);
}

/* The session of a packet to a public address; `flow` then has the UE's address and port as destination. */
INLINE struct found session_behind(struct xdp_md *ctx, struct flow *flow, const struct mapping **result)
{
	struct mapping *mapping = NAT ? slot(&mappings, 0) : 0;
	if (!mapping || flow->v6 || !find_mapping(ctx, before(ctx, flow), flow->length, DOWNLINK, mapping))
		return (struct found){};
	struct found found = session_of_v4(mapping->address);
	if (!found.session || !(found.session->flags & UE_NAT))
		return (struct found){};
	flow->destination = address_v4(mapping->address);
	flow->port = mapping->port;
	flow->natted = 1;
	*result = mapping;
	return found;
}
