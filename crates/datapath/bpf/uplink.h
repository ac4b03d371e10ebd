/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Uplink: from tunnels to the data network. */
#pragma once
#include "across.h"
#include "nat.h"

#define NOT_UPLINK -1

INLINE int is_ours(struct address to, u32 v6)
{
#pragma unroll
	for (int i = 0; i < N3_ADDRESSES; i++) {
		if (v6 ? to.high == settings.n3_v6[i].high && to.low == settings.n3_v6[i].low && to.low
		       : settings.n3_v4[i] && (u32)to.low == settings.n3_v4[i])
			return 1;
	}
	return 0;
}

/* Reads the outer IP header of a tunnel that ends here. Returns the payload's length by that header, or 0. */
INLINE u32 take_outer(struct cursor *cursor, u16 type, struct gpdu *gpdu)
{
	gpdu->sound = 1;
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = take(cursor, sizeof(*ip));
		if (!ip || ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(IPV4_FRAGMENT) ||
		    !is_ours(address_v4(ip->daddr), 0))
			return 0;
		u32 length = bpf_ntohs(ip->tot_len);
		gpdu->source = address_v4(ip->saddr);
		gpdu->v6 = 0;
		gpdu->ecn = ip->tos & ECN;
		gpdu->sound = is_right(ip);
		return length > sizeof(*ip) ? length - sizeof(*ip) : 0;
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = take(cursor, sizeof(*ip));
		if (!ip || ip->version != 6 || ip->nexthdr != IPPROTO_UDP || !is_ours(address_v6(&ip->daddr), 1))
			return 0;
		gpdu->source = address_v6(&ip->saddr);
		gpdu->v6 = 1;
		gpdu->ecn = traffic_class(ip) & ECN;
		return bpf_ntohs(ip->payload_len);
	}
	return 0;
}

/* Reads the headers of a G-PDU for this UPF with consistent lengths. */
INLINE int take_tunnel(struct cursor *cursor, u16 type, struct gpdu *gpdu)
{
	u32 rest = take_outer(cursor, type, gpdu);
	if (!rest)
		return 0;
	struct udphdr *udp = take(cursor, sizeof(*udp));
	if (!udp || udp->dest != bpf_htons(GTPU_PORT) || bpf_ntohs(udp->len) != rest)
		return 0;
	return take_gpdu(cursor, gpdu, rest - sizeof(*udp));
}

/* The length of a packet that is GTP-U for this UPF or may be a fragment of it, otherwise 0. */
INLINE u32 length_of_gtpu(struct cursor cursor, u16 type)
{
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = take(&cursor, sizeof(*ip));
		if (!ip || ip->protocol != IPPROTO_UDP || !is_ours(address_v4(ip->daddr), 0))
			return 0;
		u64 header = ip->ihl * 4;
		SCALAR(header);
		cursor.at = (void *)ip + (header & 60);
		struct udphdr *udp = take(&cursor, sizeof(*udp));
		int is_whole = !(ip->frag_off & bpf_htons(IPV4_FRAGMENT));
		return is_whole && udp && udp->dest != bpf_htons(GTPU_PORT) ? 0 : bpf_ntohs(ip->tot_len);
	}
	struct ipv6hdr *ip = type == bpf_htons(ETH_P_IPV6) ? take(&cursor, sizeof(*ip)) : 0;
	if (!ip || !is_ours(address_v6(&ip->daddr), 1) || (ip->nexthdr != IPPROTO_UDP && !is_extension(ip->nexthdr)))
		return 0;
	struct udphdr *udp = take(&cursor, sizeof(*udp));
	int is_udp = ip->nexthdr == IPPROTO_UDP;
	return is_udp && udp && udp->dest != bpf_htons(GTPU_PORT) ? 0 : sizeof(*ip) + bpf_ntohs(ip->payload_len);
}

/* Drops GTP-U for this UPF that arrives by an interface or VLAN without gNBs: the kernel would accept it,
 * and any host could impersonate a gNB. Other frames: NOT_UPLINK. */
INLINE int drop_stray_gtpu(struct xdp_md *ctx, struct path *path, u32 frame)
{
	u32 length = length_of_gtpu(behind_link(ctx, frame), frame);
	return length ? drop(path, &path->cpu->n6_rest, length, UNSUPPORTED_GTPU) : NOT_UPLINK;
}

/* Removes all headers before the user packet, prepends Ethernet, and redirects the frame. */
INLINE int send_to_network(struct xdp_md *ctx, struct path *path, const struct flow *flow, const struct route *route)
{
	u32 v6 = flow->v6;
	leave_tunnel(ctx, flow);
	take_hop(flow);
	if (bpf_xdp_adjust_head(ctx, before(ctx, flow) - link_header(route)) || !write_link_header(ctx, route, v6)) {
		path->cpu->dropped[N6_SEND_FAILED]++;
		return XDP_DROP;
	}
	return bpf_redirect_map(&devices, route->device, 0);
}

/* A packet without a route to the data network: to another UE, or to user space. */
INLINE int pass_between(struct xdp_md *ctx, struct path *path, const struct found *found, const struct rule *rule,
			const struct flow *flow)
{
	if (!settings.hairpin)
		return pass_to_user(path, found->session);
	struct passage passage = passage_of(ctx, path, found, flow, NO_QFI);
	return hairpin(ctx, rule, &passage);
}

INLINE int forward_uplink(struct xdp_md *ctx, struct path *path, const struct found *found, const struct rule *rule,
			  struct flow *flow)
{
	const struct route *route = route_to(ctx, flow->destination, flow->v6, path->now);
	if (!route)
		return pass_between(ctx, path, found, rule, flow);
	/* A closed gate takes precedence over a closed destination, as in user space. */
	if (!is_open(route, found->session) && rule->flags & RULE_OPEN) {
		if (route->area == CLOSED)
			return drop(path, &path->cpu->n3_rest, flow->length, CLOSED_DESTINATION);
		return pass_to_user(path, found->session);
	}
	/* The kernel discards a packet with a damaged header (RFC 1812 5.2.2). */
	if (!has_hop(flow) || flow->length > route->mtu || !is_sound(ctx, flow))
		return pass_to_user(path, found->session);
	u32 natted = is_natted(found->session, flow);
	struct mapping *mapping = natted ? slot(&mappings, 0) : 0;
	if (natted && (!mapping || !find_uplink_mapping(ctx, found->session, flow, mapping)))
		return pass_to_user(path, found->session);
	struct cpu *cpu = path->cpu;
	u32 length = flow->length;
	u32 reason = enforce(found->session, found->index, rule, UPLINK, length, path->now);
	u32 queue = NO_QUEUE;
	if (reason == RATE_EXCEEDED && settings.shapes) {
		queue = joins_virtual_queue(found, rule, flow, UPLINK);
		if (queue != NO_QUEUE)
			reason = PASSES(YELLOW);
	}
	if (queue == MARKED)
		flow->outer_ecn = CE;
	if (reason == RATE_EXCEEDED && settings.shapes) {
		shape(found->index);
		/* Without a route the worker sends by the kernel, which translates. */
		return redirect_to_worker(ctx, path, found->session, &cpu->n3_rest, length, natted ? 0 : route, 0);
	}
	if (reason < DROP_REASONS)
		return refuse(path, &cpu->n3_rest, found, rule, length, reason);
	count_passed(found->session, found->index, rule, UPLINK, length, path->now, reason);
	count_traffic(&cpu->up, length);
	if (mapping)
		translate(ctx, before(ctx, flow), mapping);
	return send_to_network(ctx, path, flow, route);
}

/* A packet whose source is not its UE's. For a UE with framed routes user space decides, since networks
 * may overlap. */
INLINE int refuse_source(struct path *path, struct session *session, u32 length)
{
	return session->flags & UE_FRAMED ? pass_to_user(path, session)
					  : drop(path, &path->cpu->n3_rest, length, SPOOFED_SOURCE);
}

/* ICMP messages about other packets: RFC 792. */
#define ICMP_ERRORS (1u << 3 | 1u << 4 | 1u << 5 | 1u << 11 | 1u << 12)
#define ICMPV6_FIRST_INFORMATIONAL 128

/* Whether the packet at that offset of the frame, ICMP or of extension headers, may be an ICMP error: user space examines the packet that
 * it quotes. */
NOINLINE int may_be_error(struct xdp_md *ctx, u32 offset, u32 v6)
{
	u8 head[sizeof(struct ipv6hdr) + 1];
	u8 next, first;
	if (v6) {
		if (bpf_xdp_load_bytes(ctx, offset, head, sizeof(head)))
			return 0;
		next = head[6];
		first = head[sizeof(struct ipv6hdr)];
		if (next == IPPROTO_ICMPV6)
			return first < ICMPV6_FIRST_INFORMATIONAL;
		return first == IPPROTO_ICMPV6 || is_extension(first);
	}
	if (bpf_xdp_load_bytes(ctx, offset, head, sizeof(struct iphdr) + 1))
		return 0;
	first = head[sizeof(struct iphdr)];
	return (head[0] & 15) != 5 || (first < 32 && ICMP_ERRORS >> first & 1);
}

/* Redirects a packet to user space, where it is queued. */
INLINE int redirect_uplink(struct xdp_md *ctx, struct path *path, struct session *session, const struct flow *flow)
{
	const struct route *route = route_to(ctx, flow->destination, flow->v6, path->now);
	if (route && (!is_open(route, session) || is_natted(session, flow)))
		route = 0;
	return redirect_to_worker(ctx, path, session, &path->cpu->n3_rest, flow->length, route, 0);
}

#define UNKNOWN_PEER_INTERVAL 1000000000ull /* nanoseconds */

/* Drops a G-PDU of a host that is no peer. Once in UNKNOWN_PEER_INTERVAL user space does so, which reports the host. */
INLINE int refuse_peer(struct path *path, u32 length)
{
	if (path->now >= path->cpu->unknown_peer_due) {
		path->cpu->unknown_peer_due = path->now + UNKNOWN_PEER_INTERVAL;
		return XDP_PASS;
	}
	return drop(path, &path->cpu->n3_rest, length, UNKNOWN_PEER);
}

/* Returns an XDP verdict or NOT_UPLINK; `frame` is the result of read_frame(). */
INLINE int uplink(struct xdp_md *ctx, struct path *path, u32 frame)
{
	struct gpdu gpdu;
	if (!(frame & FRAME_TUNNELS))
		return drop_stray_gtpu(ctx, path, frame);
	if (!(frame & FRAME_OURS))
		return NOT_UPLINK;
	struct cursor cursor = behind_link(ctx, frame);
	if (!take_tunnel(&cursor, frame, &gpdu))
		return NOT_UPLINK;
	if (!gpdu.sound)
		return drop(path, &path->cpu->n3_rest, gpdu.length, BAD_CHECKSUM);
	struct found found = session_of_teid(gpdu.teid);
	struct session *session = found.session;
	if (!session)
		return UNKNOWN_SESSION;
	/* The common case: the sender is the peer of the session's downlink tunnel. */
	if (session->peer && (gpdu.v6 || session->peer != (u32)gpdu.source.low) &&
	    !is_peer(gpdu.source.high, gpdu.source.low, gpdu.v6))
		return refuse_peer(path, gpdu.length);
	prefetch_session(session, UPLINK);
	struct flow flow;
	u8 *version = cursor.at;
	if ((void *)(version + 1) > cursor.end)
		return XDP_PASS;
	int is_packet = *version >> 4 == 6 ? take_v6(cursor, &flow, gpdu.length) : take_v4(cursor, &flow, gpdu.length);
	/* Bytes after the packet would be sent with it. */
	long rest = cursor.end - cursor.at;
	SCALAR(rest);
	if (!is_packet || flow.length != gpdu.length || rest != gpdu.length)
		return pass_to_user(path, session);
	flow.outer_ecn = gpdu.ecn;
	if (loses_congestion(&flow))
		return drop(path, &path->cpu->n3_rest, flow.length, LOST_CONGESTION);
	/* User space is the router on the link, and refuses all other packets of it. */
	if (is_on_link(&flow) || (may_be_icmp(&flow) && may_be_error(ctx, before(ctx, &flow), flow.v6)))
		return pass_to_user(path, session);
	if (session->action != FORWARD)
		return redirect_uplink(ctx, path, session, &flow);
	struct origin origin = { .direction = UPLINK, .qfi = gpdu.qfi, .teid = gpdu.teid };
	touch(path, session);
	if (!flow.whole && session->only[UPLINK] == NO_RULE)
		return pass_to_user(path, session);
	const struct rule *rule = find_rule(ctx, &found, &flow, &origin);
	struct traffic *in = &path->cpu->n3_rest;
	if (!rule)
		return drop(path, in, flow.length, NO_RULE_FOUND);
	/* Packets without a PDU Session Container pass: rules/compile.rs. */
	if (gpdu.qfi != NO_QFI && !has_qfi(rule, gpdu.qfi))
		return drop(path, in, flow.length, UNKNOWN_QFI);
	if (action_of(rule) == TO_USER)
		return redirect_uplink(ctx, path, session, &flow);
	if (session->flags && !(rule->flags & RULE_DOWNLINK) && !is_ues(session, &flow) && !is_framed(session, &flow))
		return refuse_source(path, session, flow.length);
	if (action_of(rule) != FORWARD)
		return drop(path, in, flow.length, action_of(rule) == DROP ? RULE_DROP : NO_RULE_FOUND);
	if (rule->flags & RULE_ONWARD) {
		struct passage passage = passage_of(ctx, path, &found, &flow, gpdu.qfi);
		return forward_to_tunnel(ctx, rule, &passage);
	}
	return forward_uplink(ctx, path, &found, rule, &flow);
}
