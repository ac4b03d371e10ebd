/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Tunnel to tunnel: to and from a further UPF (N9), and from a UE to another UE of this UPF. */
#pragma once
#include "tunnel.h"

/* A tunnelled packet as an argument of non-inlined functions, which cannot take pointers into the packet. */
struct passage {
	u64 now;
	u32 cpu;
	u32 session; /* slot */
	u32 at;      /* offset of the packet in the frame */
	u32 length;
	u8 v6;
	u8 qfi; /* of the received packet */
	u8 outer_ecn;
	u8 reserved[5];
};

INLINE struct passage passage_of(struct xdp_md *ctx, const struct path *path, const struct found *found,
				 const struct flow *flow, u8 qfi)
{
	return (struct passage){
		.now = path->now,
		.cpu = path->number,
		.session = found->index,
		.at = before(ctx, flow),
		.length = flow->length,
		.v6 = flow->v6,
		.qfi = qfi,
		.outer_ecn = flow->outer_ecn,
	};
}

/* Restores path, session and packet from a passage. */
INLINE int resume(struct xdp_md *ctx, const struct passage *passage, struct path *path, struct found *found,
		  struct flow *flow)
{
	u32 number = passage->cpu;
	if (number >= settings.senders)
		return 0;
	*path = (struct path){ slot(&cpus, number), number, passage->now };
	*found = (struct found){ slot(&sessions, passage->session), passage->session };
	if (!path->cpu || !found->session)
		return 0;
	struct cursor cursor = { (void *)(long)ctx->data + (passage->at & OFFSETS), (void *)(long)ctx->data_end };
	int is_packet = passage->v6 ? take_v6(cursor, flow, passage->length) : take_v4(cursor, flow, passage->length);
	flow->outer_ecn = passage->outer_ecn;
	return is_packet;
}

/* Counts a packet that leaves by another tunnel, and sends it. */
INLINE int send_across(struct xdp_md *ctx, struct path *path, const struct rule *rule, const struct route *route,
		 const struct flow *flow, u8 qfi)
{
	count_traffic(&path->cpu->across, flow->length);
	leave_tunnel(ctx, flow);
	return send_by_tunnel(ctx, path, rule, route, flow, qfi);
}

/* Forwards a packet into its rule's other tunnel, with its received QFI unless the rule sets one. */
NOINLINE int forward_to_tunnel(struct xdp_md *ctx, const struct rule *rule, const struct passage *passage)
{
	struct path path;
	struct found found;
	struct flow flow;
	if (!rule || !passage || !resume(ctx, passage, &path, &found, &flow))
		return XDP_PASS;
	struct traffic *in = &path.cpu->n3_rest;
	u64 way = direction_of(rule);
	SCALAR(way);
	u8 direction = way & 1, qfi = mark_of(rule, passage->qfi);
	const struct route *route = route_into(ctx, rule, flow.length, qfi, path.now);
	if (!route)
		return pass_to_user(&path, found.session);
	u32 reason = enforce(found.session, found.index, rule, direction, flow.length, path.now);
	if (reason == RATE_EXCEEDED && settings.shapes) {
		shape(found.index);
		return redirect_to_worker(ctx, &path, found.session, in, flow.length, route, redirect_peer(rule));
	}
	if (reason < DROP_REASONS)
		return refuse(&path, in, &found, rule, flow.length, reason);
	count_passed(found.session, found.index, rule, direction, flow.length, path.now, reason);
	return send_across(ctx, &path, rule, route, &flow, qfi);
}

/* Passes a packet between two sessions to user space by AF_XDP, because one of them has queued packets. */
INLINE int redirect_between(struct xdp_md *ctx, struct path *path, struct session *from, struct session *to, u32 length)
{
	to->to_user = path->now;
	return redirect_to_worker(ctx, path, from, &path->cpu->n3_rest, length, 0, 0);
}

/* Enforces rates and gates of the receiving UE. The packet is charged once: must_wait() asked before
 * without charging. */
INLINE u32 enforce_arrival(const struct found *to, const struct rule *rule, u32 length, u64 now)
{
	u32 reason = enforce(to->session, to->index, rule, DOWNLINK, length, now);
	return reason == RATE_EXCEEDED && settings.shapes ? PASSES(YELLOW) : reason;
}

INLINE int must_wait(const struct found *to, const struct rule *rule, u64 now)
{
	return settings.shapes && enforce(to->session, to->index, rule, DOWNLINK, 0, now) == RATE_EXCEEDED;
}

/* Forwards a packet that its sender's `rule` permits to another UE: by that UE's rules, with a decremented
 * hop limit. */
NOINLINE int hairpin(struct xdp_md *ctx, const struct rule *rule, const struct passage *passage)
{
	struct path path;
	struct found from;
	struct flow flow;
	if (!rule || !passage || !resume(ctx, passage, &path, &from, &flow))
		return XDP_PASS;
	struct traffic *in = &path.cpu->n3_rest;
	u32 length = flow.length;
	struct found to = session_to(&flow);
	/* User space decides on packets to other tenants and to addresses without a session. */
	if (!to.session || to.session->tenant != from.session->tenant || !has_hop(&flow) || (!flow.whole && to.session->only[DOWNLINK] == NO_RULE))
		return pass_to_user(&path, from.session);
	struct origin origin = { .direction = DOWNLINK, .qfi = NO_QFI };
	const struct rule *arrival = find_rule(ctx, &to, &flow, &origin);
	touch(&path, to.session);
	if (to.session->action != FORWARD || (arrival && action_of(arrival) == TO_USER))
		return redirect_between(ctx, &path, from.session, to.session, length);
	const struct route *route = 0;
	u8 qfi = NO_QFI;
	if (arrival && action_of(arrival) == FORWARD) {
		qfi = mark_of(arrival, NO_QFI);
		route = route_into(ctx, arrival, length, qfi, path.now);
		if (!route) {
			to.session->to_user = path.now;
			return pass_to_user(&path, from.session);
		}
		if (must_wait(&to, arrival, path.now)) {
			shape(to.index);
			return redirect_between(ctx, &path, from.session, to.session, length);
		}
	}
	u32 reason = enforce(from.session, from.index, rule, UPLINK, length, path.now);
	if (reason == RATE_EXCEEDED && settings.shapes) {
		shape(from.index);
		return redirect_between(ctx, &path, from.session, to.session, length);
	}
	if (reason < DROP_REASONS)
		return refuse(&path, in, &from, rule, length, reason);
	count_passed(from.session, from.index, rule, UPLINK, length, path.now, reason);
	if (!arrival || !route)
		return drop(&path, in, length, arrival && action_of(arrival) == DROP ? RULE_DROP : NO_RULE_FOUND);
	reason = enforce_arrival(&to, arrival, length, path.now);
	if (reason < DROP_REASONS)
		return refuse(&path, in, &to, arrival, length, reason);
	count_passed(to.session, to.index, arrival, DOWNLINK, length, path.now, reason);
	take_hop(&flow);
	return send_across(ctx, &path, arrival, route, &flow, qfi);
}
