/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Shared by the uplink and the downlink path. */
#pragma once
#include "enforce.h"
#include "match.h"
#include "route.h"

/* Orders all earlier stores before the store that ends the packet's epoch. On x86 any store has that
 * order. */
#ifdef __TARGET_ARCH_x86
#define LEAVE(cpu) (*(volatile u64 *)&(cpu)->epoch = (cpu)->epoch + 1)
#else
#define LEAVE(cpu) __sync_fetch_and_add(&(cpu)->epoch, 1)
#endif

/* In addition to the XDP verdicts: no session of this program matches the packet. */
#define UNKNOWN_SESSION -2

/* Context of the packet in processing. */
struct path {
	struct cpu *cpu;
	u32 number; /* of the CPU */
	u64 now;    /* nanoseconds since the start, at most one tick old */
};

/* The current time; the clock is read once per tick. */
INLINE u64 time_of(struct cpu *cpu)
{
	u64 jiffies = bpf_jiffies64();
	if (cpu->jiffies != jiffies) {
		cpu->now = bpf_ktime_get_ns() - settings.started + 1;
		cpu->jiffies = jiffies;
	}
	return cpu->now;
}

/* Drops a packet of `bytes` for `reason`; `in` is the receive counter of its interface. */
INLINE int drop(struct path *path, struct traffic *in, u32 bytes, u32 reason)
{
	count_traffic(in, bytes);
	if (reason < DROP_REASONS)
		path->cpu->dropped[reason]++;
	return XDP_DROP;
}

/* Drops a packet that its rule refuses; a drop for exceeded rates also counts in the packet's flow. */
INLINE int refuse(struct path *path, struct traffic *in, const struct found *found, const struct rule *rule, u32 bytes,
		  u32 reason)
{
	if (reason == RATE_EXCEEDED)
		count_flow(found->session, found->index, rule, red_or_dropped(rule, path->now), 0, bytes);
	return drop(path, in, bytes, reason);
}

/* Passes a packet of a session to user space, and records the time. */
INLINE int pass_to_user(struct path *path, struct session *session)
{
	session->to_user = path->now;
	return XDP_PASS;
}

/* Writes the route, and the tunnel's `peer` if there is one, into the metadata before the frame. */
INLINE void write_redirect_info(struct xdp_md *ctx, const struct route *route, u32 peer)
{
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(struct redirect_info)))
		return;
	struct redirect_info *redirect_info = (void *)(long)ctx->data_meta;
	if ((void *)(redirect_info + 1) > (void *)(long)ctx->data)
		return;
	*redirect_info = (struct redirect_info){ .is = REDIRECT_MAGIC, .peer = peer, .device = NO_INDEX };
	if (!route)
		return;
	redirect_info->device = route->device;
	redirect_info->mtu = route->mtu;
	redirect_info->vlan = route->vlan;
#pragma unroll
	for (int i = 0; i < 6; i++)
		redirect_info->ethernet[i] = route->ethernet[i];
}

/* Redirects a packet that must be queued, or whose session has queued packets, to the AF_XDP socket of its
 * receive queue. Without a socket the packet takes the kernel's stack, and so does one that came by the cpumap: it has no receive
 * queue, and the kernel's writes to a socket are for the CPU of its queue alone. A redirected packet is counted here, also
 * if the socket then drops it. */
INLINE int redirect_to_worker(struct xdp_md *ctx, struct path *path, struct session *session, struct traffic *in, u32 bytes,
		const struct route *route, u32 peer)
{
	struct queue queue = { .device = ctx->ingress_ifindex, .number = ctx->rx_queue_index };
	const u32 *socket = bpf_map_lookup_elem(&queues, &queue);
	long length = (long)ctx->data_end - (long)ctx->data;
	session->to_user = path->now;
	if (!socket || length > LONGEST_REDIRECTED || path->cpu->given)
		return XDP_PASS;
	int verdict = bpf_redirect_map(&sockets, *socket, XDP_PASS);
	if (verdict != XDP_REDIRECT)
		return verdict;
	count_traffic(in, bytes);
	write_redirect_info(ctx, route, peer);
	return verdict;
}

/* Moves a session whose rates are exceeded to user space, where packets are queued. All its packets
 * follow, from this one on, so that none is reordered; user space returns the session when its queue is
 * empty. */
NOINLINE int shape(u32 index)
{
	struct session *session = slot(&sessions, index);
	if (!session)
		return 0;
	struct usage_event event = { .session = session->id, .urr = SHAPED };
	/* Without the event, user space would never return the session. */
	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0) == 0)
		session->action = TO_USER;
	return 0;
}

/* A packet above its session's rate: whether it joins the virtual queue instead of waiting. */
INLINE u32 joins_virtual_queue(const struct found *found, const struct rule *rule, const struct flow *flow, u8 direction)
{
	if (!is_scalable(flow) || !has_ambr_only(rule, found->index, direction))
		return NO_QUEUE;
	return join_virtual_queue(found->index, direction, flow->length);
}

INLINE void touch(struct path *path, struct session *session)
{
	if (session->last_packet != path->now)
		session->last_packet = path->now;
}

/* The slot in an entry of a set, plus one; 0 if the entry is for another key. */
INLINE u32 slot_in_entry(void *table, u32 index, u32 key)
{
	u64 *entry = slot(table, index);
	u64 found = entry ? *(volatile u64 *)entry : 0;
	return found >> 32 == key ? found : 0;
}

/* The slot of a key in the set of eight entries, one cache line, that its low bits select, plus one; 0 if it is not there. Keys
 * are first at the place of their low bits, where sequential ones are. */
INLINE u32 direct_slot(void *table, u32 key)
{
	u32 index = key & settings.direct_mask;
	u32 found = slot_in_entry(table, index, key);
#pragma unroll
	for (u32 i = 1; i < SET_ENTRIES; i++)
		if (!found)
			found = slot_in_entry(table, index ^ i, key);
	return found;
}

/* The session in a slot, found in a direct-mapped table (slot plus one) or a hash table (`rare`). */
INLINE struct found session_in(u32 slot_plus_one, const u32 *rare)
{
	if (!slot_plus_one && !rare)
		return (struct found){};
	u32 index = slot_plus_one ? slot_plus_one - 1 : *rare;
	return (struct found){ slot(&sessions, index), index };
}

INLINE struct found session_of_teid(u32 teid)
{
	u32 near = direct_slot(&direct_teid, teid);
	return session_in(near, near ? 0 : bpf_map_lookup_elem(&by_teid, &teid));
}

/* The address is in wire order. */
INLINE struct found session_of_v4(u32 v4)
{
	u32 near = direct_slot(&direct_v4, bpf_ntohl(v4));
	return session_in(near, near ? 0 : bpf_map_lookup_elem(&by_v4, &v4));
}

INLINE struct found session_of_v6(u64 prefix)
{
	struct found near = session_in(direct_slot(&direct_v6, bpf_ntohl(prefix >> 32)), 0);
	if (near.session && near.session->ue_v6 == prefix)
		return near;
	return session_in(0, bpf_map_lookup_elem(&by_v6, &prefix));
}

/* The session of a destination: that of the UE with the address, or that with the longest matching framed
 * route. */
INLINE struct found session_to(const struct flow *flow)
{
	const struct address *to = &flow->destination;
	struct found found = flow->v6 ? session_of_v6(to->high) : session_of_v4(to->low);
	return found.session ? found : session_in(framed_slot(to->high, to->low, flow->v6), 0);
}

/* Prefetches the lines that most packets of a session need, so that their cache misses overlap. */
INLINE void prefetch_session(struct session *session, u8 direction)
{
	(void)*(volatile u32 *)&session->rules[direction].flags;
	(void)*(volatile u64 *)&session->meters[direction].peak.full_at;
	(void)*(volatile u64 *)&session->tallies[direction].passed[YELLOW].packets;
}
