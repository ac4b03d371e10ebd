/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Programs for examples/user_paths: a frame generator, a counting sink, and, as a baseline, encapsulation
 * and decapsulation without rules. */
#include "gtpu.h"

#define FRAME 80 /* bytes that are written anew for each packet: all headers up to the user's addresses; the rest stays */

/* Settings and results of the generator; entry 0 of `bench`. */
struct bench {
	u64 generated;
	u64 arrived;
	u32 sessions;
	u32 teid_at;    /* offset of session 0's TEID, to which the session's number is added; 0: none */
	u32 address_at; /* the same for an IPv4 address: the source inside a tunnel, otherwise the destination */
	u32 train;      /* consecutive packets of one session */
	u64 interval;   /* nanoseconds between packets; 0: no pause */
	u64 next;       /* time at which the next packet is due */
	u64 early;      /* number of polls before a packet was due */
	u32 destinations;   /* number of destination addresses, spread over the packets; 0, 1: the frame's own */
	u32 destination_at; /* offset of the first one; 0: nowhere */
	u64 frame[FRAME / 8];
};

SHARED_ARRAY(bench, sizeof(struct bench));

INLINE struct bench *settings_of(void)
{
	return slot(&bench, 0);
}

/* Adds to a number in wire order, at an even offset in the part that was just written. */
INLINE void add_at(void *data, void *end, u32 at, u32 number)
{
	if (!at || at > FRAME - sizeof(u32))
		return;
	u32 *word = data + at;
	if ((void *)(word + 1) <= end)
		*word = bpf_htonl(bpf_ntohl(*word) + number);
}

/* Adds to an address of an IPv4 header and updates the checksum, `back` bytes before it (RFC 1624). */
INLINE void add_to_address(void *data, void *end, u32 at, u32 back, u32 number)
{
	if (at < back || at > FRAME - sizeof(u32))
		return;
	u32 *word = data + at;
	u16 *check = data + (at - back);
	if ((void *)(word + 1) > end || (void *)(check + 1) > end)
		return;
	u32 before = *word;
	*word = bpf_htonl(bpf_ntohl(before) + number);
	*check = ~fold((u64)(u16)~*check + (u32)~before + *word);
}

/* The longest delay that the generator catches up with, in nanoseconds. */
#define MAX_LATE 4000000

/* Whether a packet is due. */
INLINE int is_due(struct bench *bench)
{
	if (!bench->interval)
		return 1;
	u64 now = bpf_ktime_get_ns();
	if (now < bench->next) {
		bench->early++;
		return 0;
	}
	if (bench->next + MAX_LATE < now)
		bench->next = now - MAX_LATE;
	bench->next += bench->interval;
	return 1;
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bench *bench = settings_of();
	if (!bench || data + FRAME > end)
		return XDP_ABORTED;
	if (!is_due(bench))
		return XDP_DROP;
	u64 *words = data;
#pragma unroll
	for (int i = 0; i < FRAME / 8; i++)
		words[i] = bench->frame[i];
	/* Sessions alternate in an order that no cache can predict. */
	u64 mixed = (bench->generated++ / (bench->train ? bench->train : 1)) * 0x9e3779b97f4a7c15ull;
	u32 number = ((mixed >> 32) * bench->sessions) >> 32;
	add_at(data, end, bench->teid_at, number);
	add_to_address(data, end, bench->address_at, bench->teid_at ? 2 : 6, number);
	if (bench->destinations > 1)
		add_to_address(data, end, bench->destination_at, 6, (mixed >> 20) % bench->destinations);
	return bpf_redirect_map(&devices, 0, 0);
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	struct bench *bench = settings_of();
	if (bench)
		bench->arrived++;
	return XDP_DROP;
}

/* The headers that the generator writes. */
struct outer {
	struct tunnel_v4 tunnel;
	struct marking marking;
};

SEC("xdp")
int decap(struct xdp_md *ctx)
{
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	struct ethernet *ethernet = take(&cursor, sizeof(*ethernet));
	struct outer *outer = take(&cursor, sizeof(*outer));
	if (!ethernet || !outer || ethernet->type != bpf_htons(ETH_P_IP) || outer->tunnel.ip.protocol != IPPROTO_UDP ||
	    outer->tunnel.udp.dest != bpf_htons(GTPU_PORT) || outer->tunnel.gtpu.type != GTPU_G_PDU)
		return XDP_PASS;
	struct ethernet kept = *ethernet;
	if (bpf_xdp_adjust_head(ctx, sizeof(*outer)))
		return XDP_DROP;
	ethernet = (void *)(long)ctx->data;
	if ((void *)(ethernet + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	*ethernet = kept;
	return bpf_redirect_map(&devices, 1, 0);
}

SEC("xdp")
int encap(struct xdp_md *ctx)
{
	static const struct rule rule = { .flags = RULE_DOWNLINK, .tunnel_teid = 7, .peer = { 0x020010ac } };
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	struct ethernet *ethernet = take(&cursor, sizeof(*ethernet));
	if (!ethernet || ethernet->type != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	u32 length = cursor.end - cursor.at;
	struct ethernet kept = *ethernet;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct outer)))
		return XDP_DROP;
	cursor = (struct cursor){ (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	ethernet = take(&cursor, sizeof(*ethernet));
	struct outer *outer = take(&cursor, sizeof(*outer));
	if (!ethernet || !outer)
		return XDP_DROP;
	*ethernet = kept;
	struct departure leaves = { .qfi = 9 };
	write_tunnel_v4(&outer->tunnel, &rule, sizeof(outer->marking) + length, &leaves);
	outer->marking = marking_of(&rule, 9);
	return bpf_redirect_map(&devices, 1, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
