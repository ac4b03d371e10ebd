/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From the data network into tunnels. */
#pragma once
#include "path.h"

INLINE u32 header_len(const struct rule *rule)
{
	return sizeof(struct tunnel_v4) + (rule->flags & RULE_HAS_QFI ? sizeof(struct marking) : 0);
}

/* Writes what goes before the user's packet; the frame has room for it. */
INLINE int write_headers(struct xdp_md *ctx, struct path *path, const struct rule *rule, const struct route *route,
			 u32 length)
{
	if (!write_link_header(ctx, route, 0))
		return 0;
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	if (!take(&cursor, sizeof(struct ethernet)) || (route->vlan && !take(&cursor, VLAN_LEN)))
		return 0;
	struct tunnel_v4 *header = take(&cursor, sizeof(*header));
	if (!header)
		return 0;
	u16 id = path->cpu->outer_id++;
	if (!(rule->flags & RULE_HAS_QFI)) {
		write_tunnel_v4(header, rule, length, id);
		return 1;
	}
	struct marking *marking = take(&cursor, sizeof(*marking));
	if (!marking)
		return 0;
	write_tunnel_v4(header, rule, sizeof(*marking) + length, id);
	write_marking(marking, rule);
	return 1;
}

/* Takes off Ethernet and what pads the frame, puts the tunnel before the packet, and sends it. */
INLINE int send_by_tunnel(struct xdp_md *ctx, struct path *path, const struct flow *flow, const struct rule *rule,
			  const struct route *route)
{
	u32 length = flow->length;
	long padding = (void *)(long)ctx->data_end - flow->at;
	long missing = before(ctx, flow) - link_header(route) - header_len(rule);
	SCALAR(padding);
	padding -= length;
	take_hop(flow);
	if ((padding && bpf_xdp_adjust_tail(ctx, -padding)) || bpf_xdp_adjust_head(ctx, missing) ||
	    !write_headers(ctx, path, rule, route, length)) {
		path->cpu->dropped[N3_SEND_FAILED]++;
		return XDP_DROP;
	}
	return bpf_redirect_map(&devices, route->device, 0);
}

INLINE int forward_downlink(struct xdp_md *ctx, struct path *path, const struct found *found, const struct rule *rule,
			    const struct flow *flow)
{
	u32 length = flow->length;
	const struct route *route = route_to(ctx, address_v4(rule->peer), 0, path->now);
	if (!route || !has_hop(flow) || length > settings.ue_mtu || length + header_len(rule) > route->mtu)
		return give(path, found->session);
	struct cpu *cpu = path->cpu;
	u32 reason = enforce(found->session, found->index, rule, DOWNLINK, length, path->now);
	if (reason == RATE_EXCEEDED && settings.shapes) {
		shape(found->session);
		return hand(ctx, path, found->session, &cpu->n6_rest, length, route, rule->peer);
	}
	if (reason != DROP_REASONS)
		return drop(path, &cpu->n6_rest, length, reason);
	count_usage(found->session, found->index, rule, path->number, DOWNLINK, length, path->now);
	count_traffic(&cpu->down, length);
	return send_by_tunnel(ctx, path, flow, rule, route);
}

/* A packet whose turn user space decides on; what a router answers with ICMP is the kernel's. */
INLINE int hand_downlink(struct xdp_md *ctx, struct path *path, struct session *session, const struct rule *rule,
			 const struct flow *flow)
{
	if (!has_hop(flow) || flow->length > settings.ue_mtu)
		return give(path, session);
	u32 peer = rule && rule->action == FORWARD ? rule->peer : 0;
	const struct route *route = peer ? route_to(ctx, address_v4(peer), 0, path->now) : 0;
	return hand(ctx, path, session, &path->cpu->n6_rest, flow->length, route, peer);
}

/* The packet in a frame from the data network; 0: it is none. */
INLINE int take_packet(struct cursor *cursor, struct flow *flow)
{
	u16 type = take_ethernet(cursor);
	u32 room = cursor->end - cursor->at;
	if (type == bpf_htons(ETH_P_IP))
		return take_v4(*cursor, flow, room);
	return type == bpf_htons(ETH_P_IPV6) ? take_v6(*cursor, flow, room) : 0;
}

INLINE int downlink(struct xdp_md *ctx, struct path *path)
{
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	struct flow flow;
	if (!take_packet(&cursor, &flow))
		return XDP_PASS;
	struct found found = flow.v6 ? session_of_v6(flow.destination.high) : session_of_v4(flow.destination.low);
	struct session *session = found.session;
	if (!session)
		return UNKNOWN_SESSION;
	warm(session, path->number, DOWNLINK);
	struct origin origin = { .direction = DOWNLINK, .qfi = NO_QFI };
	const struct rule *rule = find_rule(ctx, &found, &flow, &origin);
	if (session->action != FORWARD)
		return hand_downlink(ctx, path, session, rule, &flow);
	touch(path, session);
	if (!flow.whole && session->only[DOWNLINK] == NO_RULE)
		return give(path, session);
	struct traffic *in = &path->cpu->n6_rest;
	if (!rule)
		return drop(path, in, flow.length, NO_RULE_FOUND);
	if (rule->action == TO_USER)
		return hand_downlink(ctx, path, session, rule, &flow);
	if (rule->action != FORWARD)
		return drop(path, in, flow.length, rule->action == DROP ? RULE_DROP : NO_RULE_FOUND);
	return forward_downlink(ctx, path, &found, rule, &flow);
}
