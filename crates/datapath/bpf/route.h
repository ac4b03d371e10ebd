/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Where packets leave: the system's routing table and neighbours, asked once in ROUTE_LIFE for each
 * destination and CPU. */
#pragma once
#include "packet.h"

#define ROUTE_LIFE 100000000ull /* nanoseconds */
#define AF_INET 2
#define AF_INET6 10

INLINE u32 route_index(const struct address *to)
{
	u64 mixed = (to->high ^ to->low) * 0x9e3779b97f4a7c15ull;
	return mixed >> 54;
}

_Static_assert(ROUTES == 1 << (64 - 54), "route_index() gives an index of `routes`");

INLINE void set_address(u32 *words, const struct address *address)
{
	words[0] = address->high;
	words[1] = address->high >> 32;
	words[2] = address->low;
	words[3] = address->low >> 32;
}

/* Asks the routing table, as for a packet that came by this interface. */
APART int find_route(struct xdp_md *ctx, struct route *route, u32 v6)
{
	struct bpf_fib_lookup asked = { .family = v6 ? AF_INET6 : AF_INET, .tot_len = 1 };
	if (!route)
		return 0;
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
	route->mtu = asked.mtu_result;
	route->vlan = port->vlan;
	__builtin_memcpy(route->ethernet, asked.dmac, 6);
	__builtin_memcpy(route->ethernet + 3, asked.smac, 6);
	route->device = port->device;
	return 0;
}

/* The route to a destination; none if its packets are user space's: the neighbour is not known yet, the
 * destination is this host, or the interface is none of ours. */
INLINE const struct route *route_to(struct xdp_md *ctx, struct address to, u32 v6, u64 now)
{
	struct route *route = slot(&routes, route_index(&to));
	if (!route)
		return 0;
	if (route->until < now || route->to.high != to.high || route->to.low != to.low) {
		route->to = to;
		find_route(ctx, route, v6);
		route->until = now + ROUTE_LIFE;
	}
	return route->device == NO_INDEX ? 0 : route;
}

INLINE u32 link_header(const struct route *route)
{
	return route->vlan ? sizeof(struct ethernet) + VLAN_LEN : sizeof(struct ethernet);
}

/* Writes Ethernet to the start of the frame, where there is room for it. */
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
