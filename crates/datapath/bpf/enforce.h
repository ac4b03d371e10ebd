/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Gates, quotas, rates and counters of a rule: as pith_upf::qos, rules/compile.rs and usage.rs, on the same memory. */
#pragma once
#include "tables.h"

#define BIT_TICKS_PER_SECOND (8ull * 16 * 1000000000)
#define TICKS 16
#define CHARGE_ATTEMPTS 4

INLINE int conforms(const struct bucket *bucket, u64 ticks)
{
	if (bucket->rate == NO_LIMIT)
		return 1;
	return bucket->rate && *(volatile u64 *)&bucket->full_at <= ticks + bucket->burst;
}

/* Moves the bucket's schedule by what `bytes` take; debt is bounded by two more bursts. */
INLINE void charge(struct bucket *bucket, u64 ticks, u32 bytes)
{
	if (bucket->rate == NO_LIMIT || !bucket->rate)
		return;
	u64 cost = bytes * BIT_TICKS_PER_SECOND / bucket->rate;
	u64 deepest = ticks + 3 * bucket->burst + cost;
#pragma unroll
	for (int i = 0; i < CHARGE_ATTEMPTS; i++) {
		u64 full_at = *(volatile u64 *)&bucket->full_at;
		u64 charged = (full_at > ticks ? full_at : ticks) + cost;
		if (charged > deepest)
			charged = full_at > deepest ? full_at : deepest;
		if (__sync_val_compare_and_swap(&bucket->full_at, full_at, charged) == full_at)
			return;
	}
	/* Others charge at once: by much they can't be apart. */
	__sync_fetch_and_add(&bucket->full_at, cost);
}

INLINE struct meter *meter_of(u32 meter)
{
	return meter == NO_INDEX ? 0 : slot(&meters, meter);
}

/* Of the committed rate nothing is taken beyond what there is. */
INLINE void charge_meter(struct meter *meter, u64 ticks, u32 bytes)
{
	if (conforms(&meter->committed, ticks))
		charge(&meter->committed, ticks, bytes);
	charge(&meter->peak, ticks, bytes);
}

/* Whether two meters let a packet pass (RFC 2698); it is charged if so. Green for one, it passes whatever the
 * other says; red for one, and green for none, it does not. */
APART int admit(u32 first, u32 second, u32 bytes, u64 now)
{
	struct meter *of[RULE_METERS] = { meter_of(first), meter_of(second) };
	u64 ticks = now * TICKS;
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
		return 0;
#pragma unroll
	for (int i = 0; i < RULE_METERS; i++) {
		if (of[i])
			charge_meter(of[i], ticks, bytes);
	}
	return 1;
}

INLINE struct place *places_of(u32 urr)
{
	return slot(&usage, urr);
}

/* A URR's volume: all CPUs' and workers' shares. */
INLINE int sum_places(u32 urr, struct usage_event *volume)
{
	struct place *places = places_of(urr);
	if (!places)
		return 0;
	for (u32 i = 0; i < settings.places; i++) {
		volume->uplink += places[i].uplink;
		volume->downlink += places[i].downlink;
		volume->uplink_packets += places[i].uplink_packets;
		volume->downlink_packets += places[i].downlink_packets;
	}
	return 1;
}

INLINE int reached(const struct bounds *bounds, const struct usage_event *volume)
{
	return volume->uplink + volume->downlink >= bounds->total || volume->uplink >= bounds->uplink ||
	       volume->downlink >= bounds->downlink;
}

/* Whether a limited URR's quota is used up. */
APART int exhausted(u32 urr, u32 limit)
{
	struct limits *bounds = slot(&limits, limit);
	struct usage_event volume = {};
	return bounds && sum_places(urr, &volume) && reached(&bounds->quota, &volume);
}

/* Tells user space, once for each limit. */
APART int tell_if_reached(u32 urr, u32 limit)
{
	struct limits *bounds = slot(&limits, limit);
	struct usage_event volume = {};
	if (!bounds || bounds->told == (TOLD_THRESHOLD | TOLD_QUOTA) || !sum_places(urr, &volume))
		return 0;
	u32 news = (reached(&bounds->threshold, &volume) ? TOLD_THRESHOLD : 0) |
		   (reached(&bounds->quota, &volume) ? TOLD_QUOTA : 0);
	if (!news || !(news & ~__sync_fetch_and_or(&bounds->told, news)))
		return 0;
	volume.session = bounds->session;
	volume.urr = bounds->urr;
	return bpf_ringbuf_output(&events, &volume, sizeof(volume), 0);
}

APART int count_urr(u32 urr, u32 cpu, u32 direction, u32 bytes, u64 now)
{
	struct place *places = places_of(urr);
	if (!places || cpu >= settings.places)
		return 0;
	struct place *place = &places[cpu];
	if (direction == UPLINK) {
		place->uplink += bytes;
		place->uplink_packets++;
	} else {
		place->downlink += bytes;
		place->downlink_packets++;
	}
	if (!place->first)
		place->first = now;
	place->last = now;
	return 0;
}

/* Gates, quotas and rates: DROP_REASONS if a packet may pass, and is charged, otherwise why not. */
INLINE u32 enforce(const struct rule *rule, u32 bytes, u64 now)
{
	if (!(rule->flags & RULE_OPEN))
		return GATE_CLOSED;
#pragma unroll
	for (int i = 0; i < RULE_URRS; i++)
		if (rule->limits[i] != NO_INDEX && exhausted(rule->urrs[i], rule->limits[i]))
			return QUOTA_EXHAUSTED;
	if (rule->meters[0] == NO_INDEX || admit(rule->meters[0], rule->meters[1], bytes, now))
		return DROP_REASONS;
	return RATE_EXCEEDED;
}

/* Counts a packet that passes. */
INLINE void count_usage(const struct rule *rule, u32 cpu, u8 direction, u32 bytes, u64 now)
{
#pragma unroll
	for (int i = 0; i < RULE_URRS; i++) {
		if (rule->urrs[i] == NO_INDEX)
			return;
		count_urr(rule->urrs[i], cpu, direction, bytes, now);
		if (rule->limits[i] != NO_INDEX)
			tell_if_reached(rule->urrs[i], rule->limits[i]);
	}
}
