/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Downlink: from the data network into tunnels. */
#pragma once
#include "nat.h"
#include "tunnel.h"

INLINE int forward_downlink(struct xdp_md *ctx, struct path *path, const struct found *found, const struct rule *rule,
			    const struct flow *flow, const struct mapping *mapping)
{
	u32 length = flow->length;
	u8 qfi = mark_of(rule, NO_QFI);
	const struct route *route = route_into(ctx, rule, length, qfi, path->now);
	if (!route || !has_hop(flow) || length > settings.ue_mtu)
		return pass_to_user(path, found->session);
	struct cpu *cpu = path->cpu;
	u32 reason = enforce(found->session, found->index, rule, DOWNLINK, length, path->now);
	u32 queue = NO_QUEUE;
	if (reason == RATE_EXCEEDED && settings.shapes) {
		queue = joins_virtual_queue(found, rule, flow, DOWNLINK);
		if (queue != NO_QUEUE)
			reason = PASSES(YELLOW);
	}
	if (reason == RATE_EXCEEDED && settings.shapes) {
		shape(found->index);
		if (flow->natted)
			return pass_to_user(path, found->session);
		return redirect_to_worker(ctx, path, found->session, &cpu->n6_rest, length, route, redirect_peer(rule));
	}
	if (reason < DROP_REASONS)
		return refuse(path, &cpu->n6_rest, found, rule, length, reason);
	count_passed(found->session, found->index, rule, DOWNLINK, length, path->now, reason);
	count_traffic(&cpu->down, length);
	if (mapping)
		translate(ctx, before(ctx, flow), mapping);
	take_hop(flow);
	if (queue == MARKED)
		merge_ecn(ctx, before(ctx, flow), flow->v6, CE);
	return send_by_tunnel(ctx, path, rule, route, flow, qfi);
}

/* Redirects a packet to user space, where it is queued. Packets that a router answers by ICMP take the
 * kernel's stack. */
INLINE int redirect_downlink(struct xdp_md *ctx, struct path *path, struct session *session, const struct rule *rule,
			 const struct flow *flow)
{
	/* The kernel translates a packet that user space queues. */
	if (!has_hop(flow) || flow->length > settings.ue_mtu || flow->natted)
		return pass_to_user(path, session);
	u32 peer = rule && action_of(rule) == FORWARD ? redirect_peer(rule) : 0;
	const struct route *route = peer ? route_to(ctx, address_v4(peer), 0, path->now) : 0;
	return redirect_to_worker(ctx, path, session, &path->cpu->n6_rest, flow->length, route, peer);
}

/* Reads the packet of a frame from the data network; returns 0 if there is none. */
INLINE int take_packet(struct cursor *cursor, u16 type, struct flow *flow)
{
	u32 room = cursor->end - cursor->at;
	if (type == bpf_htons(ETH_P_IP))
		return take_v4(*cursor, flow, room);
	return type == bpf_htons(ETH_P_IPV6) ? take_v6(*cursor, flow, room) : 0;
}

/* Looks up a source address; `v6` is its family. */
NOINLINE int find_sender(struct sender *sender, u32 v6)
{
	if (!sender)
		return 0;
	u32 area = area_on_n6(sender->is.high, sender->is.low, v6);
	/* A network behind a UE may have another way to the data network: only the UE's own address counts. */
	struct found found = v6 ? session_of_v6(sender->is.high) : session_of_v4(sender->is.low);
	sender->area = found.session ? area | HERE : area;
	sender->v6 = v6;
	return 0;
}

INLINE int is_sender(const struct sender *sender, const struct address *from, u8 v6)
{
	return sender->is.high == from->high && sender->is.low == from->low && sender->v6 == v6;
}

/* As route_entry(). */
INLINE struct sender *sender_entry(const struct address *from, u8 v6)
{
	u32 index = route_index(from);
	struct sender *first = slot(&senders, index);
	if (!first || is_sender(first, from, v6))
		return first;
	struct sender *second = slot(&senders, index ^ 1);
	return second && (is_sender(second, from, v6) || second->until < first->until) ? second : first;
}

/* The area of a packet's source; HERE, if it is a UE's of this UPF. */
INLINE u32 area_of_sender(const struct flow *flow, u64 now)
{
	const struct address *from = &flow->source;
	struct sender *sender = sender_entry(from, flow->v6);
	if (!sender)
		return CLOSED_MAY;
	if (sender->until < now || !is_sender(sender, from, flow->v6)) {
		sender->is = *from;
		find_sender(sender, flow->v6);
		sender->until = now + ROUTE_LIFE;
	}
	return sender->area;
}

enum admission { ADMITTED, FORGED, UNDECIDED };

/* Whether a packet from outside may have its source address: none of a UE of this UPF, of the core or of this host. User
 * space decides on other tenants and where permits may match. */
INLINE enum admission check_sender(const struct flow *flow, const struct session *to, u64 now)
{
	u32 area = area_of_sender(flow, now);
	if (area == OPEN)
		return ADMITTED;
	if (area & HERE)
		return FORGED;
	if (area == CLOSED_MAY)
		return UNDECIDED;
	if (area == CLOSED)
		return may_be_icmp(flow) ? UNDECIDED : FORGED;
	return area + 1 == TENANT + to->tenant ? ADMITTED : UNDECIDED;
}

/* `frame` is the result of read_frame(). */
INLINE int downlink(struct xdp_md *ctx, struct path *path, u32 frame)
{
	struct cursor cursor = behind_link(ctx, frame);
	struct flow flow;
	if (!take_packet(&cursor, frame, &flow))
		return XDP_PASS;
	const struct mapping *mapping = 0;
	struct found found = session_to(&flow);
	if (!found.session)
		found = session_behind(ctx, &flow, &mapping);
	struct session *session = found.session;
	if (!session)
		return UNKNOWN_SESSION;
	prefetch_session(session, DOWNLINK);
	if (!is_sound(ctx, &flow))
		return drop(path, &path->cpu->n6_rest, flow.length, BAD_CHECKSUM);
	/* The kernel has to see both directions of each connection of a UE with NAT. */
	if (is_natted(session, &flow) && !flow.natted)
		return pass_to_user(path, session);
	enum admission admission = check_sender(&flow, session, path->now);
	if (admission == FORGED)
		return drop(path, &path->cpu->n6_rest, flow.length, SPOOFED_SOURCE);
	if (admission == UNDECIDED)
		return pass_to_user(path, session);
	struct origin origin = { .direction = DOWNLINK, .qfi = NO_QFI };
	const struct rule *rule = find_rule(ctx, &found, &flow, &origin);
	if (session->action != FORWARD)
		return redirect_downlink(ctx, path, session, rule, &flow);
	touch(path, session);
	if (!flow.whole && session->only[DOWNLINK] == NO_RULE)
		return pass_to_user(path, session);
	struct traffic *in = &path->cpu->n6_rest;
	if (!rule)
		return drop(path, in, flow.length, NO_RULE_FOUND);
	if (action_of(rule) == TO_USER)
		return redirect_downlink(ctx, path, session, rule, &flow);
	if (action_of(rule) != FORWARD)
		return drop(path, in, flow.length, action_of(rule) == DROP ? RULE_DROP : NO_RULE_FOUND);
	return forward_downlink(ctx, path, &found, rule, &flow, mapping);
}
