/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Next hops by the kernel's routes and neighbours, looked up once in ROUTE_LIFE for each destination and
 * CPU. */
#pragma once
#include "gtpu.h"

#define ROUTE_LIFE 100000000ull /* nanoseconds */
#define AF_INET 2
#define AF_INET6 10

INLINE u32 route_index(const struct address *to)
{
	u64 mixed = (to->high ^ to->low) * 0x9e3779b97f4a7c15ull;
	return mixed >> 32 & settings.route_mask;
}

/* The area of an address. */
INLINE u32 area_of(u64 high, u64 low, u32 v6)
{
	struct area_key key = { .length = 160, .family = v6 ? 6 : 4, .address = { low } };
	if (v6) {
		key.address[0] = high;
		key.address[1] = high >> 32;
		key.address[2] = low;
		key.address[3] = low >> 32;
	} else {
		key.length = 64;
	}
	const u32 *area = bpf_map_lookup_elem(&areas, &key);
	return area ? *area : OPEN;
}

/* The same for a packet's end on N6. While a switch is set, user space decides on all that is not closed. */
INLINE u32 area_on_n6(u64 high, u64 low, u32 v6)
{
	u32 area = area_of(high, low, v6) & (AREA | HERE);
	const u32 *lacks = slot(&incomplete, 0), *detour = slot(&incomplete, 1);
	if (((lacks && *lacks) || (detour && *detour)) && (area & AREA) != CLOSED)
		area = (area & HERE) | CLOSED_MAY;
	return area;
}

/* Whether GTP-U from this address is accepted. */
NOINLINE int is_peer(u64 high, u64 low, u32 v6)
{
	return area_of(high, low, v6) & PEER ? 1 : 0;
}

/* The MTU of a route to an IPv4 address; `link` is that of the interface. */
INLINE u32 mtu_to(u32 v4, u32 link)
{
	struct route_mtu_key key = { .length = 32, .v4 = v4 };
	const u32 *mtu = bpf_map_lookup_elem(&route_mtus, &key);
	return mtu && *mtu && *mtu < link ? *mtu : link;
}

/* Looks up a route as for a packet received by this interface. */
NOINLINE int find_route(struct xdp_md *ctx, struct route *route, u32 v6)
{
	struct bpf_fib_lookup asked = { .family = v6 ? AF_INET6 : AF_INET, .tot_len = 1 };
	if (!route)
		return 0;
	route->area = area_on_n6(route->to.high, route->to.low, v6) & AREA;
	asked.ifindex = ctx->ingress_ifindex;
	if (v6)
		set_address(asked.ipv6_dst, &route->to);
	else
		asked.ipv4_dst = route->to.low;
	route->device = NO_INDEX;
	if (bpf_fib_lookup(ctx, &asked, sizeof(asked), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	u32 leaves = asked.ifindex;
	const struct port *port = bpf_map_lookup_elem(&ports, &leaves);
	if (!port)
		return 0;
	if (port->one_sided && route->area == OPEN)
		route->area = CLOSED;
	route->mtu = v6 ? asked.mtu_result : mtu_to(route->to.low, asked.mtu_result);
	route->vlan = port->vlan;
	__builtin_memcpy(route->ethernet, asked.dmac, 6);
	__builtin_memcpy(route->ethernet + 3, asked.smac, 6);
	route->device = port->device;
	return 0;
}

INLINE int is_route_to(const struct route *route, const struct address *to, u8 v6)
{
	return route->to.high == to->high && route->to.low == to->low && route->v6 == v6;
}

/* The entry of a destination in the cache: of its two entries the one that has it, otherwise the older one. */
INLINE struct route *route_entry(const struct address *to, u8 v6)
{
	u32 index = route_index(to);
	struct route *first = slot(&routes, index);
	if (!first || is_route_to(first, to, v6))
		return first;
	struct route *second = slot(&routes, index ^ 1);
	return second && (is_route_to(second, to, v6) || second->until < first->until) ? second : first;
}

/* The route to a destination. None if user space must handle the packets: unresolved neighbour,
 * destination on this host, or an interface that is not configured. */
INLINE const struct route *route_to(struct xdp_md *ctx, struct address to, u32 v6, u64 now)
{
	u8 family = v6 ? 1 : 0;
	struct route *route = route_entry(&to, family);
	if (!route)
		return 0;
	if (route->until < now || !is_route_to(route, &to, family)) {
		route->to = to;
		route->v6 = family;
		find_route(ctx, route, v6);
		route->until = now + ROUTE_LIFE;
	}
	return route->device == NO_INDEX ? 0 : route;
}

/* Whether a session's packets may take a route to the data network. */
INLINE int is_open(const struct route *route, const struct session *session)
{
	return route->area == OPEN || route->area + 1 == TENANT + session->tenant;
}

INLINE u32 link_header(const struct route *route)
{
	return route->vlan ? sizeof(struct ethernet) + VLAN_LEN : sizeof(struct ethernet);
}

/* Writes the Ethernet header at the start of the frame, which has room for it. */
INLINE int write_link_header(struct xdp_md *ctx, const struct route *route, u32 v6)
{
	struct cursor cursor = { (void *)(long)ctx->data, (void *)(long)ctx->data_end };
	struct ethernet *ethernet = take(&cursor, sizeof(*ethernet));
	u16 type = v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	if (!ethernet)
		return 0;
#pragma unroll
	for (int i = 0; i < 6; i++)
		ethernet->addresses[i] = route->ethernet[i];
	ethernet->type = type;
	if (!route->vlan)
		return 1;
	struct vlan *vlan = take(&cursor, sizeof(*vlan));
	if (!vlan)
		return 0;
	ethernet->type = bpf_htons(ETH_P_8021Q);
	vlan->tag = route->vlan;
	vlan->type = type;
	return 1;
}

INLINE struct address peer_of(const struct rule *rule)
{
	if (!(rule->flags & RULE_PEER_V6))
		return address_v4(rule->peer[0]);
	const u32 *words = rule->peer;
	return (struct address){ (u64)words[1] << 32 | words[0], (u64)words[3] << 32 | words[2] };
}

/* The longest packet whose UDP checksum the program computes. */
#define LONGEST_SUMMED 9216

/* The route of a rule's tunnel; none if user space must handle the packet. */
INLINE const struct route *route_into(struct xdp_md *ctx, const struct rule *rule, u32 length, u8 qfi, u64 now)
{
	u32 v6 = rule->flags & RULE_PEER_V6;
	const struct route *route = route_to(ctx, peer_of(rule), v6, now);
	if (!route || length + header_len(rule, qfi) > route->mtu || (v6 && length > LONGEST_SUMMED))
		return 0;
	return route;
}
