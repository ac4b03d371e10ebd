/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Gates, quotas, rates and counters of a rule: the algorithms of pith_upf::qos, rules/compile.rs and
 * rules/usage.rs, on the same memory. */
#pragma once
#include "tables.h"

#define TICKS 16
#define PER_BYTE_SHIFT 16

INLINE int conforms(const struct bucket *bucket, u64 ticks)
{
	if (bucket->rate == NO_LIMIT)
		return 1;
	return bucket->rate && *(volatile u64 *)&bucket->full_at <= ticks + bucket->burst;
}

/* Advances the bucket's schedule by the time of `bytes`; debt is limited to two more bursts. */
INLINE void charge(struct bucket *bucket, u64 ticks, u32 bytes)
{
	if (bucket->rate == NO_LIMIT || !bucket->rate)
		return;
	u64 cost = bytes * bucket->per_byte >> PER_BYTE_SHIFT;
	u64 deepest = ticks + 3 * bucket->burst + cost;
	u64 full_at = *(volatile u64 *)&bucket->full_at;
	u64 charged = (full_at > ticks ? full_at : ticks) + cost;
	if (charged > deepest)
		charged = full_at > deepest ? full_at : deepest;
	/* A failed exchange means that another CPU charged at the same time, and set the schedule to the current
	 * time. */
	if (__sync_val_compare_and_swap(&bucket->full_at, full_at, charged) != full_at)
		__sync_fetch_and_add(&bucket->full_at, cost);
}

/* The meter of an index in a rule. */
INLINE struct meter *meter_of(u32 meter)
{
	if (meter == NO_INDEX)
		return 0;
	if (!(meter & IN_BLOCK))
		return slot(&meters, meter);
	struct session *block = slot(&sessions, (meter & ~IN_BLOCK) / BLOCK_METERS);
	return block ? &block->meters[meter % BLOCK_METERS] : 0;
}

/* The committed bucket is not charged beyond its tokens. */
INLINE void charge_meter(struct meter *meter, u64 ticks, u32 bytes)
{
	if (conforms(&meter->committed, ticks))
		charge(&meter->committed, ticks, bytes);
	charge(&meter->peak, ticks, bytes);
}

/* The colour of a packet by all its meters (RFC 2698): it passes and is charged, or it is red. Green by
 * one meter: it passes. Red by one and green by none: it does not. */
NOINLINE int admit(u32 first, u32 second, u32 third, u32 bytes, u64 ticks)
{
	struct meter *of[RULE_METERS] = { meter_of(first), meter_of(second), meter_of(third) };
	int green = 0, red = 0;
#pragma unroll
	for (int i = 0; i < RULE_METERS; i++) {
		if (!of[i])
			continue;
		if (!conforms(&of[i]->peak, ticks))
			red = 1;
		else if (of[i]->committed.rate != NO_LIMIT && conforms(&of[i]->committed, ticks))
			green = 1;
	}
	if (red && !green)
		return RED;
#pragma unroll
	for (int i = 0; i < RULE_METERS; i++) {
		if (of[i])
			charge_meter(of[i], ticks, bytes);
	}
	return green ? GREEN : YELLOW;
}

/* As admit(), inlined for the common case of one meter in the session's block. */
INLINE u32 admit_one(struct session *session, u8 direction, u32 bytes, u64 ticks)
{
	struct meter *meter = &session->meters[direction];
	if (!conforms(&meter->peak, ticks))
		return RED;
	u32 green = meter->committed.rate != NO_LIMIT && conforms(&meter->committed, ticks);
	charge_meter(meter, ticks, bytes);
	return green ? GREEN : YELLOW;
}

/* The longest virtual queue of a session, and that from which on its packets are marked, in nanoseconds. */
#define VIRTUAL_QUEUE 4000000ull
#define MARKED_QUEUE 1000000ull

/* The results of join_virtual_queue(). */
enum { NO_QUEUE, UNMARKED, MARKED };

/* Admits a packet above its session's rate whose sender slows down by marks (L4S, RFC 9331): it does not wait, but it is charged, and
 * marked by the length of the queue that it would find if packets waited. Packets beyond VIRTUAL_QUEUE have to wait. */
NOINLINE int join_virtual_queue(u32 index, u32 direction, u32 bytes)
{
	struct session *session = slot(&sessions, index);
	u64 way = direction;
	if (!session)
		return NO_QUEUE;
	SCALAR(way);
	struct meter *meter = &session->meters[way & (BLOCK_METERS - 1)];
	struct bucket *peak = &meter->peak;
	if (meter->committed.rate != NO_LIMIT || peak->rate == NO_LIMIT || !peak->rate)
		return NO_QUEUE;
	/* The clock of the other decisions is a tick old: as long as this queue. */
	u64 ticks = (bpf_ktime_get_ns() - settings.started + 1) * TICKS;
	u64 full_at = *(volatile u64 *)&peak->full_at, empty_at = ticks + peak->burst;
	u64 queue = full_at > empty_at ? full_at - empty_at : 0;
	if (queue > VIRTUAL_QUEUE * TICKS)
		return NO_QUEUE;
	charge(peak, ticks, bytes);
	return queue > MARKED_QUEUE * TICKS ? MARKED : UNMARKED;
}

/* Whether a packet refused by its rates is red, because it exceeds a QoS flow's own maximum rate, or only
 * dropped: pith_upf::qos::Flow::is_above_own_rate(). */
NOINLINE int fate_of_refused(u32 first, u32 second, u32 third, u64 now)
{
	struct meter *of[RULE_METERS] = { meter_of(first), meter_of(second), meter_of(third) };
#pragma unroll
	for (int i = 0; i < RULE_METERS; i++)
		if (of[i] && of[i]->committed.rate != NO_LIMIT && !conforms(&of[i]->peak, now * TICKS))
			return RED;
	return DROPPED;
}

INLINE u32 red_or_dropped(const struct rule *rule, u64 now)
{
	return fate_of_refused(rule->meters[0], rule->meters[1], rule->meters[2], now);
}

/* The counter of a fate of one of the two flows in a block: of one of those that passed, or were refused. */
INLINE struct traffic *block_counter(struct session *block, u64 flow, u64 fate, int passed)
{
	SCALAR(flow);
	SCALAR(fate);
	flow &= BLOCK_FLOWS - 1;
	return passed ? &block->tallies[flow].passed[fate & 1] : &block->refused[flow][fate & 1];
}

/* Counts in a flow whose counters are elsewhere: `in` is the slot of the session's own block, or the group
 * of its further flows. */
NOINLINE int count_flow_elsewhere(u32 in, u32 flow, u32 fate, u32 bytes)
{
	if (flow < BLOCK_FLOWS) {
		struct session *block = slot(&sessions, in);
		if (block)
			count_shared(block_counter(block, flow, fate, fate < PASSED_FATES), bytes);
		return 0;
	}
	struct flow_group *group = slot(&flows, in);
	u64 at = flow - BLOCK_FLOWS, of = fate & (FATES - 1);
	SCALAR(at);
	SCALAR(of);
	if (group && at < SESSION_FLOWS - BLOCK_FLOWS)
		count_shared(&group->of[at][of & (FATES - 1)], bytes);
	return 0;
}

/* Counts the outcome of a packet in its rule's flow. */
INLINE void count_flow(struct session *session, u32 index, const struct rule *rule, u32 fate, int passed, u32 bytes)
{
	u32 flow = flow_of(rule);
	if (flow >= BLOCK_FLOWS || session->block != index)
		count_flow_elsewhere(flow < BLOCK_FLOWS ? session->block : session->flows, flow, fate, bytes);
	else
		count_shared(block_counter(session, flow, fate, passed), bytes);
}

/* The counter of a URR index in a rule, of one direction. */
INLINE struct urr_half *urr_half_of(u32 urr, u64 direction)
{
	SCALAR(direction);
	direction &= 1;
	if (urr & IN_BLOCK) {
		struct session *block = slot(&sessions, urr & ~IN_BLOCK);
		if (!block)
			return 0;
		SCALAR(block);
		return &block->tallies[direction].urr;
	}
	struct urr *outside = slot(&usage, urr);
	if (!outside)
		return 0;
	SCALAR(outside);
	return &outside->of[direction];
}

/* A URR's volume. */
INLINE int read_volume(u32 urr, struct usage_event *volume)
{
	const struct urr_half *up = urr_half_of(urr, UPLINK), *down = urr_half_of(urr, DOWNLINK);
	if (!up || !down)
		return 0;
	volume->uplink = up->volume.bytes;
	volume->downlink = down->volume.bytes;
	volume->uplink_packets = up->volume.packets;
	volume->downlink_packets = down->volume.packets;
	return 1;
}

INLINE int reached(const struct bounds *bounds, const struct usage_event *volume)
{
	return volume->uplink + volume->downlink >= bounds->total || volume->uplink >= bounds->uplink ||
	       volume->downlink >= bounds->downlink;
}

/* Reports a reached limit to user space, once for each limit. If the ring has no room, the next packet does it. */
NOINLINE int report_if_reached(u32 urr, u32 limit)
{
	struct limits *bounds = slot(&limits, limit);
	struct usage_event volume = {};
	if (!bounds || bounds->reported == (REPORTED_THRESHOLD | REPORTED_QUOTA) || !read_volume(urr, &volume))
		return 0;
	u32 news = (reached(&bounds->threshold, &volume) ? REPORTED_THRESHOLD : 0) |
		   (reached(&bounds->quota, &volume) ? REPORTED_QUOTA : 0);
	if (news)
		news &= ~__sync_fetch_and_or(&bounds->reported, news);
	if (!news)
		return 0;
	volume.session = bounds->session;
	volume.urr = bounds->urr;
	if (bpf_ringbuf_output(&events, &volume, sizeof(volume), 0))
		__sync_fetch_and_and(&bounds->reported, ~news);
	return 0;
}

/* Whether a URR has exhausted its quota. */
NOINLINE int exhausted(u32 urr, u32 limit)
{
	struct limits *bounds = slot(&limits, limit);
	struct usage_event volume = {};
	if (!bounds || !read_volume(urr, &volume) || !reached(&bounds->quota, &volume))
		return 0;
	/* Packets beyond a quota are not counted, so only these can repeat a report that the ring had no room for. */
	if (!(bounds->reported & REPORTED_QUOTA))
		report_if_reached(urr, limit);
	return 1;
}

INLINE void count_urr_half(struct urr_half *half, u32 bytes, u64 now)
{
	count_shared(&half->volume, bytes);
	/* CPUs that count the first packet at the same time differ by less than a tick. */
	if (!half->first)
		half->first = now;
	if (half->last != now)
		half->last = now;
}

NOINLINE int count_urr(u32 urr, u32 direction, u32 bytes, u64 now)
{
	struct urr_half *half = urr_half_of(urr, direction);
	if (half)
		count_urr_half(half, bytes, now);
	return 0;
}

/* The return value of enforce() for a packet that may pass: its colour, beyond the drop reasons. */
#define PASSES(fate) (DROP_REASONS + (fate))

INLINE u32 passes_or_red(u32 fate)
{
	return fate == RED ? RATE_EXCEEDED : PASSES(fate);
}

/* Enforces gates, quotas and rates. Returns a drop reason; or PASSES() if the packet may pass and was
 * charged. */
INLINE u32 enforce(struct session *session, u32 index, const struct rule *rule, u8 direction, u32 bytes, u64 now)
{
	u64 ticks = now * TICKS;
	if (!(rule->flags & RULE_OPEN))
		return GATE_CLOSED;
#pragma unroll
	for (int i = 0; i < RULE_URRS; i++)
		if (rule->limits[i] != NO_INDEX && exhausted(rule->urrs[i], rule->limits[i]))
			return QUOTA_EXHAUSTED;
	u32 first = rule->meters[0], own = IN_BLOCK | (index * BLOCK_METERS + direction);
	if (first == NO_INDEX)
		return PASSES(YELLOW);
	if (first == own && rule->meters[1] == NO_INDEX)
		return passes_or_red(admit_one(session, direction, bytes, ticks));
	return passes_or_red(admit(first, rule->meters[1], rule->meters[2], bytes, ticks));
}

/* Whether the session's AMBR is the only rate of a rule's packets. */
INLINE int has_ambr_only(const struct rule *rule, u32 index, u8 direction)
{
	return rule->meters[0] == (IN_BLOCK | (index * BLOCK_METERS + direction)) && rule->meters[1] == NO_INDEX;
}

/* Counts a forwarded packet in its URRs. */
INLINE void count_usage(struct session *session, u32 index, const struct rule *rule, u8 direction, u32 bytes, u64 now)
{
#pragma unroll
	for (int i = 0; i < RULE_URRS; i++) {
		u32 urr = rule->urrs[i];
		if (urr == NO_INDEX)
			return;
		if (urr == (IN_BLOCK | index))
			count_urr_half(&session->tallies[direction].urr, bytes, now);
		else
			count_urr(urr, direction, bytes, now);
		if (rule->limits[i] != NO_INDEX)
			report_if_reached(urr, rule->limits[i]);
	}
}

/* Counts a forwarded packet in its flow and URRs; `passes` is the result of enforce(). */
INLINE void count_passed(struct session *session, u32 index, const struct rule *rule, u8 direction, u32 bytes, u64 now,
			 u32 passes)
{
	count_flow(session, index, rule, passes - PASSES(YELLOW), 1, bytes);
	count_usage(session, index, rule, direction, bytes, now);
}
