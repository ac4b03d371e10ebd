/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Selects the rule of a session for a packet. */
#pragma once
#include "gtpu.h"

/* A session and its slot. */
struct found {
	struct session *session; /* or null */
	u32 index;
};

/* The origin of a packet. */
struct origin {
	u8 direction; /* DOWNLINK: the data network; UPLINK: a tunnel, in either direction of the session */
	u8 qfi;       /* NO_QFI: none */
	u32 teid;
};

INLINE u8 direction_of(const struct rule *rule)
{
	return rule->flags & RULE_DOWNLINK ? DOWNLINK : UPLINK;
}

INLINE int within(struct address address, const struct address *value, const struct address *mask)
{
	return (address.high & mask->high) == value->high && (address.low & mask->low) == value->low;
}

INLINE int port_within(u16 port, u16 first, u16 last)
{
	return first <= port && port <= last;
}

/* As rules/classify.rs. */
INLINE int filter_takes(const struct match *match, const struct key *key, u8 direction)
{
	u8 flags = match->flags;
	if (flags & MATCH_ALL)
		return 1;
	if (flags & (direction == UPLINK ? MATCH_DOWNLINK_ONLY : MATCH_UPLINK_ONLY))
		return 0;
	if (flags & (key->v6 ? MATCH_V4 : MATCH_V6))
		return 0;
	if (flags & MATCH_PROTOCOL && match->protocol != key->protocol)
		return 0;
	if ((key->tos ^ match->tos) & match->tos_mask)
		return 0;
	if (flags & (MATCH_LOCAL_PORTS | MATCH_REMOTE_PORTS)) {
		u16 local = direction == UPLINK ? key->source_port : key->destination_port;
		u16 remote = direction == UPLINK ? key->destination_port : key->source_port;
		if (!key->has_ports)
			return 0;
		if (flags & MATCH_LOCAL_PORTS && !port_within(local, match->local_first, match->local_last))
			return 0;
		if (flags & MATCH_REMOTE_PORTS && !port_within(remote, match->remote_first, match->remote_last))
			return 0;
	}
	if (!(flags & (MATCH_V4 | MATCH_V6)))
		return 1;
	struct address local = direction == UPLINK ? key->source : key->destination;
	struct address remote = direction == UPLINK ? key->destination : key->source;
	return within(local, &match->local, &match->local_mask) && within(remote, &match->remote, &match->remote_mask);
}

/* Whether the rule's packets may have that QFI. */
INLINE int has_qfi(const struct rule *rule, u8 qfi)
{
	return rule->qfis >> (qfi & 0x3f) & 1;
}

INLINE int comes_from(const struct rule *rule, const struct origin *origin)
{
	if (origin->direction == DOWNLINK)
		return !(rule->flags & RULE_TUNNEL);
	if (!(rule->flags & RULE_TUNNEL) || rule->teid != origin->teid)
		return 0;
	return rule->flags & RULE_ANY_QFI || (origin->qfi != NO_QFI && has_qfi(rule, origin->qfi));
}

/* A rule in the session's block. */
INLINE const struct rule *rule_at(const struct session *session, u8 index)
{
	if (index >= BLOCK_RULES)
		return 0;
	u64 at = index;
	SCALAR(at);
	return &session->rules[at & (BLOCK_RULES - 1)];
}

/* A rule in the session's block or beside its filters. */
INLINE const struct rule *rule_among(const struct session *session, const struct matches *matches, u8 index)
{
	if (index < BLOCK_RULES)
		return rule_at(session, index);
	if (index >= SESSION_RULES)
		return 0;
	u64 at = index - BLOCK_RULES;
	SCALAR(at);
	at &= SESSION_RULES - 1;
	/* The compiler may compute the address before it compares: any is within the entry. */
	SCALAR(at);
	return at < SESSION_RULES - BLOCK_RULES ? &matches->rules[at] : 0;
}

/* The index of the first rule with a matching filter, in the session of that slot. */
NOINLINE int first_match(u32 index, const struct key *key, const struct origin *origin)
{
	const struct session *session = slot(&sessions, index);
	if (!session || !key || !origin)
		return NO_RULE;
	const struct matches *matches = slot(&filters, session->matches);
	if (!matches)
		return NO_RULE;
	for (u32 i = 0; i < SESSION_MATCHES; i++) {
		if (i >= session->match_count)
			break;
		const struct match *match = &matches->of[i];
		const struct rule *rule = rule_among(session, matches, match->rule);
		if (rule && comes_from(rule, origin) && filter_takes(match, key, direction_of(rule)))
			return match->rule;
	}
	return NO_RULE;
}

/* The rule for a packet. Most sessions have one rule for packets from tunnels, and one for packets from
 * the data network. */
INLINE const struct rule *find_rule(struct xdp_md *ctx, const struct found *found, const struct flow *flow,
				    const struct origin *origin)
{
	const struct rule *only = rule_at(found->session, found->session->only[origin->direction]);
	if (only)
		return comes_from(only, origin) ? only : 0;
	struct origin from = *origin;
	struct key *key = slot(&keys, 0);
	if (!key)
		return 0;
	*key = (struct key){};
	read_key(key, flow, (void *)(long)ctx->data_end);
	u8 index = first_match(found->index, key, &from);
	const struct matches *matches = index < BLOCK_RULES ? 0 : slot(&filters, found->session->matches);
	return matches ? rule_among(found->session, matches, index) : rule_at(found->session, index);
}

/* Whether the source is the UE's own address. */
INLINE int is_ues(const struct session *session, const struct flow *flow)
{
	if (flow->v6)
		return session->flags & UE_V6 && session->ue_v6 == flow->source.high;
	return session->flags & UE_V4 && session->ue_v4 == (u32)flow->source.low;
}

/* The slot, plus one, of the session whose framed route contains the address; 0 if there is none. */
NOINLINE int framed_slot(u64 high, u64 low, u32 v6)
{
	struct network network = { .length = 128, .address = { high, high >> 32, low, low >> 32 } };
	if (!v6) {
		network.address[2] = bpf_htonl(0xffff);
		network.address[3] = low;
	}
	u32 *found = bpf_map_lookup_elem(&framed, &network);
	return found ? *found + 1 : 0;
}

/* Whether the source is in a framed route of this session, by the longest match. */
INLINE int is_framed(const struct session *session, const struct flow *flow)
{
	u32 found = session->flags & UE_FRAMED ? framed_slot(flow->source.high, flow->source.low, flow->v6) : 0;
	const struct session *owner = found ? slot(&sessions, found - 1) : 0;
	return owner && owner->id == session->id;
}
