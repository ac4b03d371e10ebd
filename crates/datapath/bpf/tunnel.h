/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Into tunnels. */
#pragma once
#include "path.h"

#define CHUNK 64
#define MOST_CHUNKS (LONGEST_SUMMED / CHUNK)
#define OFFSETS 0x3fff

/* Bytes of a frame from an offset on, for a checksum: a sum of words in the order of memory. */
APART int sum_frame(struct xdp_md *ctx, u32 at, u32 length)
{
	u64 sum = 0;
	for (u32 i = 0; i < MOST_CHUNKS && length >= CHUNK; i++) {
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

/* A packet on its way into a tunnel. */
struct departure {
	u32 at; /* in the frame */
	u32 length;
	u16 sum; /* of its words, for a checksum over IPv6 */
	u16 id;  /* of the outer IPv4 header */
	u8 qfi;
	u8 reserved[3];
};

/* Writes what goes between the link's header and the packet. */
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

/* The same over IPv6. */
INLINE int write_outer_v6(struct cursor *cursor, const struct rule *rule, const struct departure *leaves)
{
	struct tunnel_v6 *header = take(cursor, sizeof(*header));
	if (!header)
		return 0;
	if (leaves->qfi == NO_QFI) {
		write_tunnel_v6(header, rule, leaves->length, NO_QFI, leaves->sum);
		return 1;
	}
	struct marking *place = take(cursor, sizeof(*place));
	if (!place)
		return 0;
	struct marking marking = marking_of(rule, leaves->qfi);
	u64 sum = leaves->sum + sum_words(&marking, 2);
	write_tunnel_v6(header, rule, sizeof(marking) + leaves->length, leaves->qfi, sum);
	*place = marking;
	return 1;
}

/* Writes all headers before the packet; the frame has room for them. */
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

/* Takes off what is before the packet and what pads the frame, puts the tunnel before it, and sends it. */
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

APART int send_into_v6(struct xdp_md *ctx, const struct rule *rule, const struct route *route,
		       const struct departure *leaves)
{
	return rule && route && leaves ? send_into(ctx, rule, route, leaves, 1) : XDP_DROP;
}

/* Sends a packet into its rule's tunnel. */
INLINE int send_by_tunnel(struct xdp_md *ctx, struct path *path, const struct rule *rule, const struct route *route,
			  const struct flow *flow, u8 qfi)
{
	struct departure leaves = {
		.at = before(ctx, flow),
		.length = flow->length,
		.id = path->cpu->outer_id++,
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

/* What a worker is told of a tunnel's far end with a packet of it: over IPv6, nothing. */
INLINE u32 told_peer(const struct rule *rule)
{
	return rule->flags & RULE_PEER_V6 ? 0 : rule->peer[0];
}
