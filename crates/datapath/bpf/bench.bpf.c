/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Programs for examples/user_paths: a frame generator, a counting sink, and, as a baseline, encapsulation
 * and decapsulation without rules. */
#include "gtpu.h"

#define FRAME 80 /* bytes that are written anew for each packet: all headers up to the user's addresses; the rest stays */

/* Settings and results of the generator; entry 0 of `bench`. The layout is that of examples/generator/mod.rs. */
struct bench {
	u64 generated;
	u32 sessions;
	u32 teid_at;    /* offset of session 0's TEID, to which the session's number is added; 0: none */
	u32 address_at; /* the same for an IPv4 address: the source inside a tunnel, otherwise the destination */
	u32 train;      /* consecutive packets of one session */
	u64 interval;   /* nanoseconds between packets; 0: no pause */
	u64 next;       /* time at which the next packet is due */
	u64 early;      /* number of polls before a packet was due */
	u64 pace;       /* nanoseconds between packets that user space should keep: sink_of_adaptive() */
	u64 first_pace;
	u64 last;       /* time of the last poll of generate_timed() */
	u64 pauses;     /* times that the CPU was taken away from it */
	u32 destinations;   /* number of destination addresses, spread over the packets; 0, 1: the frame's own */
	u32 destination_at; /* offset of the first one; 0: nowhere */
	u32 stamp_at;       /* offset of the time stamps that generate_timed() writes */
	u32 stamp_after;    /* the same in the forwarded frame, for sink_timed() */
	u64 frame[FRAME / 8];
};

SHARED_ARRAY(bench, sizeof(struct bench));

/* What a CPU's sink has received. */
struct arrivals {
	u64 packets;
	u64 marked; /* with Congestion Experienced in the outer header */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct arrivals);
} arrivals SEC(".maps");

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

/* Writes the headers of the next packet. */
INLINE void write_frame(struct bench *bench, void *data, void *end)
{
	u64 *words = data;
	if (data + FRAME > end)
		return;
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
	write_frame(bench, data, end);
	return bpf_redirect_map(&devices, 0, 0);
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	struct arrivals *arrived = slot(&arrivals, 0);
	if (arrived)
		arrived->packets++;
	return XDP_DROP;
}

/* Shifts of the pace by which a sender of ECT(1) answers a mark, and a packet without one: it settles where one packet of some
 * sixty is marked. */
#define SLOWER 7
#define FASTER 13
/* The pace stays between these parts of its first value. */
#define FASTEST(first) ((first) / 2)
#define SLOWEST(first) ((first) * 2)

/* As sink(), for a sender that adapts its rate to marks, as those of L4S do (RFC 9331). */
SEC("xdp")
int sink_of_adaptive(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct arrivals *arrived = slot(&arrivals, 0);
	struct bench *bench = settings_of();
	const u8 *tos = data + sizeof(struct ethernet) + 1;
	if (!arrived || !bench || (void *)(tos + 1) > end)
		return XDP_DROP;
	arrived->packets++;
	u64 pace = bench->pace, first = bench->first_pace;
	if ((*tos & 3) == 3) {
		arrived->marked++;
		pace += pace >> SLOWER;
	} else {
		pace -= pace >> FASTER;
	}
	if (pace >= FASTEST(first) && pace <= SLOWEST(first))
		bench->pace = pace;
	return XDP_DROP;
}

/* Times between packets, of a Poisson process; one is drawn for each packet. */
#define GAPS 4096

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GAPS);
	__type(key, u32);
	__type(value, u32);
} gaps SEC(".maps");

/* Histograms of times in nanoseconds: for each power of two 16 bins; the last part of a bin's number is in the four bits after
 * the highest. */
#define BINS 1024
enum histogram {
	ADDED,    /* from the frame's transmission to its arrival */
	EXPECTED, /* from the time at which it was due to its arrival */
	LATE,     /* from the time at which it was due to its transmission: the sender's own delay */
	HISTOGRAMS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HISTOGRAMS *BINS);
	__type(key, u32);
	__type(value, u64);
} delays SEC(".maps");

INLINE void count_delay(u32 histogram, u64 delay)
{
	u32 exponent = 0;
	u64 rest = delay;
#pragma unroll
	for (int shift = 32; shift > 0; shift >>= 1) {
		if (rest >> shift) {
			rest >>= shift;
			exponent += shift;
		}
	}
	u32 bin = exponent < 4 ? delay & 15 : (exponent - 3) << 4 | (delay >> (exponent - 4) & 15);
	u64 *count = slot(&delays, histogram * BINS + (bin & (BINS - 1)));
	if (count)
		++*count;
}

/* Time stamps in a packet. */
struct stamps {
	u64 due;
	u64 sent;
};

#define LAST_STAMP 255
/* Nanoseconds that no packet takes. */
#define LONGEST 10000000000ull

INLINE struct stamps *stamps_at(u64 at, void *data, void *end)
{
	SCALAR(at);
	struct stamps *stamps = data + (at & LAST_STAMP);
	return (void *)(stamps + 1) <= end ? stamps : 0;
}

/* A longer time between two polls, which forward a packet at most, means that the CPU was taken away. */
#define PAUSE 100000

/* Sends at the times of a Poisson process of its own, whatever becomes of the packets: what is late is made up for, and never
 * left out. Only the time in which other processes had the CPU is no time of the process. */
SEC("xdp")
int generate_timed(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bench *bench = settings_of();
	if (!bench || data + FRAME > end)
		return XDP_ABORTED;
	u64 now = bpf_ktime_get_ns(), away = bench->last ? now - bench->last : 0;
	u64 due = bench->next ? bench->next : now;
	bench->last = now;
	if (away > PAUSE) {
		bench->pauses++;
		due += away;
		bench->next = due;
	}
	if (now < due) {
		bench->early++;
		return XDP_DROP;
	}
	const u32 *gap = slot(&gaps, bpf_get_prandom_u32() & (GAPS - 1));
	bench->next = due + (gap ? *gap : 0);
	write_frame(bench, data, end);
	struct stamps *stamps = stamps_at(bench->stamp_at, data, end);
	if (stamps)
		*stamps = (struct stamps){ due, bpf_ktime_get_ns() };
	return bpf_redirect_map(&devices, 0, 0);
}

SEC("xdp")
int sink_timed(struct xdp_md *ctx)
{
	u64 now = bpf_ktime_get_ns();
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct arrivals *arrived = slot(&arrivals, 0);
	struct bench *bench = settings_of();
	if (!arrived || !bench)
		return XDP_DROP;
	arrived->packets++;
	const struct stamps *stamps = stamps_at(bench->stamp_after, data, end);
	/* The kernel sends packets of its own, such as those of neighbour discovery. */
	if (stamps && stamps->due <= stamps->sent && stamps->sent <= now && now - stamps->due < LONGEST) {
		count_delay(ADDED, now - stamps->sent);
		count_delay(EXPECTED, now - stamps->due);
		count_delay(LATE, stamps->sent - stamps->due);
	}
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
