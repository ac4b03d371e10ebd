/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Encapsulation: sending packets into tunnels. */
#pragma once
#include "path.h"

#define CHUNK 64
#define MAX_CHUNKS (LONGEST_SUMMED / CHUNK)
#define OFFSETS 0x3fff

/* Sums the frame's bytes from an offset on as 16-bit words in memory order, for a checksum. */
NOINLINE int sum_frame(struct xdp_md *ctx, u32 at, u32 length)
{
	u64 sum = 0;
	for (u32 i = 0; i < MAX_CHUNKS && length >= CHUNK; i++) {
		u32 *words = (void *)(long)ctx->data + (at & OFFSETS);
		SCALAR(words);
		if ((void *)words + CHUNK > (void *)(long)ctx->data_end)
			return 0;
		sum += sum_words(words, CHUNK / sizeof(*words));
		at += CHUNK;
		length -= CHUNK;
	}
	for (u32 i = 0; i < CHUNK / sizeof(u16) && length >= sizeof(u16); i++) {
		u16 *word = (void *)(long)ctx->data + (at & OFFSETS);
		SCALAR(word);
		if ((void *)(word + 1) > (void *)(long)ctx->data_end)
			return 0;
		sum += *word;
		at += sizeof(*word);
		length -= sizeof(*word);
	}
	u8 *last = (void *)(long)ctx->data + (at & OFFSETS);
	SCALAR(last);
	if (length && (void *)(last + 1) <= (void *)(long)ctx->data_end)
		sum += bpf_htons(*last << 8);
	return fold(sum);
}

/* Whether an IPv4 header has a correct checksum. */
INLINE int is_sound(struct xdp_md *ctx, const struct flow *flow)
{
	const struct iphdr *ip = flow->at;
	if (flow->v6)
		return 1;
	if (ip->ihl == 5)
		return is_right(ip);
	return sum_frame(ctx, before(ctx, flow), ip->ihl * 4) == 0xffff;
}

/* Writes the outer headers between link header and packet. */
INLINE int write_outer_v4(struct cursor *cursor, const struct rule *rule, const struct departure *leaves)
{
	struct tunnel_v4 *header = take(cursor, sizeof(*header));
	if (!header)
		return 0;
	if (leaves->qfi == NO_QFI) {
		write_tunnel_v4(header, rule, leaves->length, leaves);
		return 1;
	}
	struct marking *marking = take(cursor, sizeof(*marking));
	if (!marking)
		return 0;
	write_tunnel_v4(header, rule, sizeof(*marking) + leaves->length, leaves);
	*marking = marking_of(rule, leaves->qfi);
	return 1;
}

/* As write_outer_v4(), over IPv6. */
INLINE int write_outer_v6(struct cursor *cursor, const struct rule *rule, const struct departure *leaves)
{
	struct tunnel_v6 *header = take(cursor, sizeof(*header));
	if (!header)
		return 0;
	if (leaves->qfi == NO_QFI) {
		write_tunnel_v6(header, rule, leaves->length, leaves, leaves->sum);
		return 1;
	}
	struct marking *target = take(cursor, sizeof(*target));
	if (!target)
		return 0;
	struct marking marking = marking_of(rule, leaves->qfi);
	u64 sum = leaves->sum + sum_words(&marking, 2);
	write_tunnel_v6(header, rule, sizeof(marking) + leaves->length, leaves, sum);
	*target = marking;
	return 1;
}

/* Writes the link header and the outer headers; the caller has made room for them. */
INLINE int write_headers(struct xdp_md *ctx, const struct rule *rule, const struct route *route,
			 const struct departure *leaves, u32 v6)
{
	if (!write_link_header(ctx, route, v6))
		return 0;
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	if (!take(&cursor, sizeof(struct ethernet)) || (route->vlan && !take(&cursor, VLAN_LEN)))
		return 0;
	return v6 ? write_outer_v6(&cursor, rule, leaves) : write_outer_v4(&cursor, rule, leaves);
}

/* Removes the headers before the packet and the frame's padding, prepends the tunnel's headers, and
 * redirects the frame. */
INLINE int send_into(struct xdp_md *ctx, const struct rule *rule, const struct route *route,
		     const struct departure *leaves, u32 v6)
{
	long padding = (long)ctx->data_end - (long)ctx->data - leaves->at - leaves->length;
	long missing = (long)leaves->at - link_header(route) - header_len(rule, leaves->qfi);
	if ((padding && bpf_xdp_adjust_tail(ctx, -padding)) || bpf_xdp_adjust_head(ctx, missing) ||
	    !write_headers(ctx, rule, route, leaves, v6))
		return XDP_DROP;
	return bpf_redirect_map(&devices, route->device, 0);
}

NOINLINE int send_into_v6(struct xdp_md *ctx, const struct rule *rule, const struct route *route,
		       const struct departure *leaves)
{
	return rule && route && leaves ? send_into(ctx, rule, route, leaves, 1) : XDP_DROP;
}

#define MIX 0x9e3779b97f4a7c15ull

INLINE u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * MIX;
	return hash ^ hash >> 32;
}

/* Whether the four octets after the IP header distinguish flows: ports, or ESP's SPI. */
INLINE int names_flow(u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP || protocol == IPPROTO_ESP;
}

/* The packet at an offset of the frame. */
INLINE struct cursor packet_at(struct xdp_md *ctx, u32 at)
{
	void *data = (void *)(long)ctx->data + (at & OFFSETS);
	SCALAR(data);
	return (struct cursor){ data, (void *)(long)ctx->data_end };
}

/* What an outer header takes from the packet at an offset of the frame. The upper half is a hash of the packet's flow, the same as in
 * packet/entropy.rs: a flow has one outer source port on all paths. The lower half is the ECN field. The hash of a fragment
 * leaves out the ports: all fragments of a packet have the same. */
NOINLINE u64 read_traits(struct xdp_md *ctx, u32 at, u32 length, u32 v6)
{
	struct cursor cursor = packet_at(ctx, at);
	u64 hash = 0, protocol, ecn;
	u32 rest = 0, has_rest;
	if (v6) {
		struct ipv6hdr *ip = take(&cursor, sizeof(*ip));
		if (!ip)
			return 0;
		struct address from = address_v6(&ip->saddr), to = address_v6(&ip->daddr);
		hash = mix(mix(mix(mix(hash, from.high), from.low), to.high), to.low);
		protocol = ip->nexthdr;
		ecn = traffic_class(ip) & ECN;
		has_rest = length >= sizeof(*ip) + sizeof(rest);
	} else {
		struct iphdr *ip = take(&cursor, sizeof(*ip));
		if (!ip)
			return 0;
		hash = mix(hash, ip->saddr | (u64)ip->daddr << 32);
		protocol = ip->protocol;
		ecn = ip->tos & ECN;
		has_rest = length >= sizeof(*ip) + sizeof(rest) && ip->ihl == 5 && !(ip->frag_off & bpf_htons(IPV4_FRAGMENT));
	}
	if (!settings.outer_ecn)
		ecn = NOT_ECT;
	if (!settings.flow_ports)
		return ecn;
	word *found = take(&cursor, sizeof(*found));
	if (found && has_rest && names_flow(protocol))
		rest = *found;
	hash = mix(mix(hash, rest | protocol << 32), 0);
	return (hash | 1ull << 32) >> 32 << 32 | ecn;
}

/* Applies the outer ECN field of a packet's tunnel to the packet (RFC 6040 4.2), and updates its checksum (RFC 1624): the type of
 * service is the lower half of the header's first word. */
NOINLINE int merge_ecn(struct xdp_md *ctx, u32 at, u32 v6, u32 outer_ecn)
{
	struct cursor cursor = packet_at(ctx, at);
	if (v6) {
		struct ipv6hdr *ip = take(&cursor, sizeof(*ip));
		if (!ip)
			return 0;
		u8 tos = tos_behind(traffic_class(ip), outer_ecn);
		ip->priority = tos >> 4;
		ip->flow_lbl[0] = tos << 4 | (ip->flow_lbl[0] & 0x0f);
		return 1;
	}
	struct iphdr *ip = take(&cursor, sizeof(*ip));
	if (!ip)
		return 0;
	u8 before = ip->tos, tos = tos_behind(before, outer_ecn);
	ip->check = ~fold((u64)(u16)~ip->check + (u16)~bpf_htons(before) + bpf_htons(tos));
	ip->tos = tos;
	return 1;
}

/* A packet leaves its tunnel: a router of the tunnel's path may have set the ECN field of the outer header. */
INLINE void leave_tunnel(struct xdp_md *ctx, const struct flow *flow)
{
	/* Outer CE or ECT(1): only these change the packet. */
	if (flow->outer_ecn & 1)
		merge_ecn(ctx, before(ctx, flow), flow->v6, flow->outer_ecn);
}

/* Encapsulates a packet by its rule and sends it. */
INLINE int send_by_tunnel(struct xdp_md *ctx, struct path *path, const struct rule *rule, const struct route *route,
			  const struct flow *flow, u8 qfi)
{
	u32 v6 = rule->flags & RULE_PEER_V6;
	u64 at = before(ctx, flow);
	u64 traits = settings.outer_ecn || settings.flow_ports ? read_traits(ctx, at, flow->length, flow->v6) : 0;
	struct departure leaves = {
		.flow = traits >> 32,
		.at = at,
		.length = flow->length,
		.sum = v6 ? sum_frame(ctx, at, flow->length) : 0,
		/* CPUs and workers take turns, so that fragments of their packets are not mixed up. */
		.id = bpf_htons(path->cpu->outer_id++ * settings.senders + path->number),
		.qfi = qfi,
		/* Normal mode of RFC 6040 4.1. */
		.ecn = traits & ECN,
	};
	int verdict = v6 ? send_into_v6(ctx, rule, route, &leaves) : send_into(ctx, rule, route, &leaves, 0);
	if (verdict == XDP_DROP)
		path->cpu->dropped[N3_SEND_FAILED]++;
	return verdict;
}

/* The tunnel's peer for a frame's metadata: its IPv4 address, or 0 over IPv6. */
INLINE u32 redirect_peer(const struct rule *rule)
{
	return rule->flags & RULE_PEER_V6 ? 0 : rule->peer[0];
}
