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

/* A packet to be encapsulated. */
struct departure {
	u32 at; /* in the frame */
	u32 length;
	u16 sum; /* of the packet's words, for the UDP checksum over IPv6 */
	u16 id;  /* of the outer IPv4 header */
	u8 qfi;
	u8 reserved[3];
};

/* Writes the outer headers between link header and packet. */
INLINE int write_outer_v4(struct cursor *cursor, const struct rule *rule, const struct departure *leaves)
{
	struct tunnel_v4 *header = take(cursor, sizeof(*header));
	if (!header)
		return 0;
	if (leaves->qfi == NO_QFI) {
		write_tunnel_v4(header, rule, leaves->length, NO_QFI, leaves->id);
		return 1;
	}
	struct marking *marking = take(cursor, sizeof(*marking));
	if (!marking)
		return 0;
	write_tunnel_v4(header, rule, sizeof(*marking) + leaves->length, leaves->qfi, leaves->id);
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
		write_tunnel_v6(header, rule, leaves->length, NO_QFI, leaves->sum);
		return 1;
	}
	struct marking *target = take(cursor, sizeof(*target));
	if (!target)
		return 0;
	struct marking marking = marking_of(rule, leaves->qfi);
	u64 sum = leaves->sum + sum_words(&marking, 2);
	write_tunnel_v6(header, rule, sizeof(marking) + leaves->length, leaves->qfi, sum);
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

/* Encapsulates a packet by its rule and sends it. */
INLINE int send_by_tunnel(struct xdp_md *ctx, struct path *path, const struct rule *rule, const struct route *route,
			  const struct flow *flow, u8 qfi)
{
	struct departure leaves = {
		.at = before(ctx, flow),
		.length = flow->length,
		/* CPUs and workers take turns, so that fragments of their packets are not mixed up. */
		.id = bpf_htons(path->cpu->outer_id++ * settings.urr_shares + path->number),
		.qfi = qfi,
	};
	u32 v6 = rule->flags & RULE_PEER_V6;
	if (v6)
		leaves.sum = sum_frame(ctx, leaves.at, leaves.length);
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
